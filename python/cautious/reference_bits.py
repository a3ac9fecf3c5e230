"""Bits, for reference.py (docs/spec.md, sections 1, 9 and 10): arithmetic that rounds once, where torch has no fma; random bits
by a counter hash, in int64; bins of size; bf16 parameters by stochastic and split rounding. No rule and no decay here."""
import math

import torch

# ---- arithmetic in f64, rounded once to f32 or f64 ---------------------------------------------------------------------------


def rounded(a, T):
    """f64 numbers as T, to nearest; below the smallest normal number a zero of the same sign."""
    least = torch.finfo(T).tiny * (1 - 2**-25 if T == torch.float32 else 1)  # from here on they round up to that number
    return torch.where(a.abs() < least, a * 0, a).to(T)


def sum_and_rest(a, b):
    """a + b in f64, and exactly what its rounding lost."""
    s = a + b
    t = s - a
    return s, torch.where(s.isfinite(), (a - (s - t)) + (b - t), torch.zeros_like(s))


def odd_sum(a, b):
    """a + b in f64 with an odd last bit unless it is exact: rounding once more is then the same as rounding once."""
    s, rest = sum_and_rest(a, b)
    word = s.view(torch.int64)
    nudge = torch.where((rest > 0) == (s > 0), torch.ones_like(word), -torch.ones_like(word))
    return torch.where((rest != 0) & ((word & 1) == 0), word + nudge, word).view(torch.float64)


def halves(a):
    """Two numbers of 26 bits that add up to a."""
    high = a * 134217729.0 - (a * 134217729.0 - a)
    return high, a - high


def fma(a, b, c):
    """a b + c, rounded once; in f64 the product is rounded by itself if a factor is above 1e299."""
    T, (a, b, c) = c.dtype, torch.broadcast_tensors(a.double(), b.double(), c.double())
    if T == torch.float32:
        return rounded(odd_sum(a * b, c), T)  # the product is exact in f64
    small = ((a * b).abs() < 2.0**-800) & (c.abs() < 2.0**-700) & (a.abs() < 2.0**300)  # its lower half would be a denormal
    by = torch.where(small, torch.full_like(c, 2.0**300), torch.ones_like(c))
    a, c = a * by, c * by
    product, (a1, a2), (b1, b2) = a * b, halves(a), halves(b)
    low = a2 * b2 - (((product - a1 * b1) - a2 * b1) - a1 * b2)  # what the product lost
    s, rest = sum_and_rest(product, c)
    rest = odd_sum(rest, torch.where(low.isfinite() & s.isfinite(), low, torch.zeros_like(low)))
    return rounded(torch.where(rest == 0, s, s + rest) / by, T)


# ---- random bits: a function of (seed, purpose, t, tensor, coordinate) -------------------------------------------------------

WORD, LONG = 2**32 - 1, 2**64 - 1


def hash_of(name):
    """What step() takes as `tensor`: FNV-1a of the tensor's name."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 & LONG
    return value


def key_of(seed, purpose, t, tensor):
    key = seed + 0x9E3779B97F4A7C15
    for part in (purpose, t, tensor, 0):
        key = ((key & LONG) ^ (key & LONG) >> 30) * 0xBF58476D1CE4E5B9 & LONG
        key = (key ^ key >> 27) * 0x94D049BB133111EB & LONG
        key = (key ^ key >> 31) + part
    return key & WORD, key >> 32


def times(a, b):
    """The product modulo 2^32, without leaving 63 bits."""
    return (a * (b & 0xFFFF) + ((a * (b >> 16) & 0xFFFF) << 16)) & WORD


def random_bits(j, key):
    z = times((j & WORD) ^ key[0], 0x9E3779B1)
    z = (z ^ z >> 15) + key[1] + times(j >> 32, 0x85EBCA6B) & WORD
    z = times(z ^ z >> 16, 0x7FEB352D)
    z = times(z ^ z >> 15, 0x846CA68B)
    return z ^ z >> 16


def rounding_bits(j, key):
    """16 bits for stochastic rounding; two coordinates of a block of 256 share a word."""
    block, p = j >> 8, j & 255
    w = times(random_bits((p >> 5) * 16 + (p & 15) + 1, (0, 0)) | 1, random_bits(2 * block, key) | 1)
    w = w + random_bits(2 * block + 1, key) & WORD
    return torch.where((p & 31) < 16, (w ^ w >> 16) & 0xFFFF, w >> 16)


def coordinates(x):
    return torch.arange(x.numel(), device=x.device).view(x.shape)


def chance(x, key):
    """24 bits for each coordinate, for a decay that tosses coins."""
    return random_bits(coordinates(x), key) >> 8


def odds_by_size(x, strikes):
    """Of 2^24, for each parameter: the share of `strikes` among those of about its size. Grouped on the CPU, so this waits."""
    if x.dtype == torch.float32:
        bins = (x.view(torch.int32).long() & 0x7FFFFFFF) >> 20  # exponent and three bits
    else:
        bins = (((x.view(torch.int64) >> 49) & 0x3FFF) - 8 * (1023 - 127)).clamp(8, 2047)
    bins = torch.where(x == 0, torch.zeros_like(bins), bins).flatten()
    all_, on = (torch.bincount(of, minlength=2048).tolist() for of in (bins, bins[strikes.flatten()]))
    groups, group = [[0]], []
    for size in range(2047, 0, -1):
        group.append(size)
        if sum(all_[size] for size in group) >= 64:
            groups, group = groups + [group], []
    if len(groups) > 1:
        groups[-1] += group
    else:
        groups.append(group)
    odds = [0] * 2048
    for group in groups:
        share = sum(on[size] for size in group) / max(sum(all_[size] for size in group), 1)
        for size in group:
            odds[size] = math.floor(share * 2**24 + 0.5)
    return torch.tensor(odds, device=x.device)[bins].view(x.shape)


# ---- bf16 parameters: the upper half of an f32 -------------------------------------------------------------------------------


def bits_of(x):
    return x.view(torch.int32).long() & WORD


def signed(a, width):
    """The lowest bits of a as a number in two's complement."""
    half = 1 << (width - 1)
    return ((a & (2 * half - 1)) ^ half) - half


def as_bf16(high):
    return signed(high, 16).short().view(torch.bfloat16)


def joined(x, low):
    """The f32 numbers of bf16 parameters and their low halves."""
    return signed((x.view(torch.int16).long() << 16) + low.long(), 32).int().view(torch.float32)


def split(x):
    """f32 numbers as bf16 (ties away from zero) and the rest, joined() exactly."""
    bits = torch.where(x == x, bits_of(x), torch.full_like(x, 0x7FC00000, dtype=torch.int64))
    high = (bits + 0x8000) >> 16
    return as_bf16(high), signed(bits - (high << 16), 16).short()


def stochastic(x, key):
    """f32 numbers as bf16, up with the probability of what is cut off."""
    by_chance = as_bf16((bits_of(x) + rounding_bits(coordinates(x), key)) >> 16)
    return torch.where(x.isfinite(), by_chance, x.to(torch.bfloat16))
