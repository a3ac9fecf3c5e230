"""docs/spec.md as a program: one tensor, one step at a time, each line one rounding.

Shares nothing with src/. Sums over a tensor are exact sums of double products (math.fsum), so that they are nobody's order.
"""

import math
import struct
from decimal import Decimal, getcontext

from ieee import F32, F64

getcontext().prec = 60
MASK32, MASK64 = (1 << 32) - 1, (1 << 64) - 1
RANDOM_DECAY, STOCHASTIC_ROUNDING = 1, 2


# ---- bits ----------------------------------------------------------------------------------------------------------------
def f32_bits(a):
    return struct.unpack("<I", struct.pack("<f", a))[0]


def f32_of(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def mix64(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK64
    return z ^ (z >> 31)


def fnv1a(name):
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 & MASK64
    return h


def key_of(seed, purpose, t, name):
    z = mix64((seed + 0x9E3779B97F4A7C15) & MASK64)
    z = mix64((z + purpose) & MASK64)
    z = mix64((z + t) & MASK64)
    return mix64((z + fnv1a(name)) & MASK64)


def random_bits(key, j):
    k0, k1 = key & MASK32, key >> 32
    z = ((j & MASK32) ^ k0) * 0x9E3779B1 & MASK32
    z ^= z >> 15
    z = (z + k1 + (j >> 32) * 0x85EBCA6B) & MASK32
    z ^= z >> 16
    z = z * 0x7FEB352D & MASK32
    z ^= z >> 15
    z = z * 0x846CA68B & MASK32
    return z ^ (z >> 16)


def bf16_nearest(a):
    if a != a:
        return a
    bits = f32_bits(a)
    return f32_of((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000)


def bf16_stochastic(a, key, j):
    """Two coordinates, 16 apart in a block of 256, share a word: a fixed number times one of the block, plus another."""
    block, position = divmod(j, 256)
    spread = random_bits(0, position // 32 * 16 + position % 16 + 1) | 1
    word = (spread * (random_bits(key, 2 * block) | 1) + random_bits(key, 2 * block + 1)) & 0xFFFFFFFF
    chance = (word ^ word >> 16) & 0xFFFF if position % 32 < 16 else word >> 16
    return f32_of((f32_bits(a) + chance) & 0xFFFF0000) if math.isfinite(a) else a


def bf16_split(a):
    """The parameter and the signed rest, with bits(a) = bits(parameter) + rest."""
    if a != a:
        return a, 0
    bits = f32_bits(a)
    high = (bits + 0x8000) & 0xFFFF0000
    return f32_of(high), bits - high


# ---- rules ---------------------------------------------------------------------------------------------------------------
def unbias(beta, t):
    power, base = 1.0, beta
    while t > 0:
        if t & 1:
            power *= base
        t >>= 1
        base *= base
    return 1 / (1 - power)


def sign(T, z):
    z = T.flush(z)
    return 1.0 if z > 0 else -1.0 if z < 0 else z


def mix(T, m, g, beta):
    return T.fma(T.of(beta), m, T.mul(T.of(1 - beta), g))


def sgd(T, f, t, g, moments):
    return g


def sgdm(T, f, t, g, moments):
    moments["m"] = mix(T, moments["m"], g, f["beta"])
    return moments["m"]


def adam(T, f, t, g, moments):
    moments["m"] = m = mix(T, moments["m"], g, f["beta1"])
    moments["v"] = v = mix(T, moments["v"], T.mul(g, g), f["beta2"])
    c1, c2 = unbias(f["beta1"], t), unbias(f["beta2"], t)
    eps = max(T.of(f["eps"] / c1), T.smallest_normal)
    return T.div(m, T.fma(T.of(math.sqrt(c2) / c1), T.sqrt(v), eps))


def lion_k(T, f, t, g, moments):
    z = mix(T, moments["m"], g, f["beta1"])
    moments["m"] = mix(T, moments["m"], g, f["beta2"])
    return z


def lion(T, f, t, g, moments):
    return sign(T, lion_k(T, f, t, g, moments))


RULES = {"sgd": (sgd, ""), "sgdm": (sgdm, "m"), "adam": (adam, "mv"), "lion": (lion, "m"), "lion-k": (lion_k, "m")}


def relativistic(T, z, e, exact_e):
    """z / sqrt(z^2 + e^2); in high precision where a square would leave the range of T."""
    low, high = (T.of(1e-15), T.of(1e18)) if T is F32 else (1e-140, 1e150)
    length = T.sqrt(T.fma(z, z, T.mul(e, e)))
    if low < length < high or not math.isfinite(z):
        return T.div(z, length)
    z, e = Decimal(T.flush(z)), Decimal(exact_e)
    return T.of(float(z / (z * z + e * e).sqrt()))


def subgradient(T, f, z):
    """The shaping stage of Lion-K: a subgradient of K at z."""
    k, n, e = f["k"], len(z), T.of(f.get("e", 1e-3))
    if k == "l1":
        return [sign(T, a) for a in z]
    if k == "l2":
        norm = math.sqrt(math.fsum(a * a for a in z))
        return [T.mul(a, T.of(1 / norm)) for a in z] if norm > 0 else z
    if k == "lp":
        p, sizes = Decimal(f["p"]), [Decimal(abs(a)) for a in z]
        norm = sum(a**p for a in sizes) ** (1 / p)
        return [math.copysign(T.of(float((a / norm) ** (p - 1))), b) for a, b in zip(sizes, z)]
    if k == "huber":
        return [max(-1.0, min(1.0, q)) if q == q else q for q in (T.div(a, e) for a in z)]
    if k == "relativistic":
        return [relativistic(T, a, e, f["e"]) for a in z]
    if k == "threshold":
        return [sign(T, a) if abs(a) > e else 0.0 if a == a else a for a in z]
    if k == "topk":
        kept = sorted(range(n), key=lambda i: (-abs(z[i]), i))[: math.ceil(f["fraction"] * n)]
        return [sign(T, z[i]) if i in kept else 0.0 for i in range(n)]
    raise ValueError(k)


# ---- decay ---------------------------------------------------------------------------------------------------------------
def product_sign(T, a, x):
    """The sign of the exact product a x, -1, 0 or 1: no underflow, subnormal operands are zeros, 0 where one is NaN."""
    a, x = T.flush(a), T.flush(x)
    if a != a or x != x or a == 0 or x == 0:
        return 0
    return 1 if (a > 0) == (x > 0) else -1


def size_bin(T, a):
    """Exponent and first three bits after the point; 0 for a zero. Beyond f32's exponents: the nearest of them."""
    a = abs(T.flush(a))
    if a == 0:
        return 0
    exponent = math.frexp(a)[1] - 1
    if exponent < -126:
        return 8
    if exponent > 127:
        return 8 * 255 + 7
    return 8 * (exponent + 127) + math.floor(8 * (a / 2.0**exponent - 1))


def coupled_weight_decay(coupling, wd, lr, lr_max):
    if coupling == "corrected":
        return wd * (lr / lr_max)
    if coupling == "independent":
        return wd / lr_max
    if coupling == "squared":
        return wd * lr
    return wd


def clear(total, parts):
    """A gate must not hang on the order of a summation."""
    parts = list(parts)
    assert total == 0 and not any(parts) or abs(total) > 1e-6 * math.fsum(map(abs, parts)), "choose other inputs"
    return total


def clipped(T, values, limit, size):
    """Values scaled so that their size is the limit at most; a size that is not finite scales nothing."""
    return [T.of(limit / size * a) for a in values] if math.isfinite(size) and size > limit else values


class Tensor:
    """x (and x0) as stored; `case` has the recipe and the options by the names of golden.json."""

    def __init__(self, case, x, x0):
        self.case, self.t = (dict(case, decay="none") if case.get("decay_switch") == "off" else case), 0
        self.T = F64 if case["dtype"] == "f64" else F32
        self.x, self.low, self.x0 = list(x), [0] * len(x), list(x0)
        self.moments = {name: [0.0] * len(x) for name in RULES[case["rule"]][1]}

    def direction(self, g):
        T, f = self.T, self.case.get("fields", {})
        rule, names = RULES[self.case["rule"]]
        u = []
        for i, gradient in enumerate(g):
            moments = {name: self.moments[name][i] for name in names}
            u.append(rule(T, f, self.t, gradient, moments))
            for name in names:
                bf16 = self.case.get("moments") == "bf16"
                self.moments[name][i] = bf16_nearest(moments[name]) if bf16 else moments[name]
        return subgradient(T, f, u) if self.case["rule"] == "lion-k" else u

    def step(self, g, lr, lr_max, decay_factor):
        """One step; returns (decayed, active, nonfinite, skipped)."""
        case, T, n = self.case, self.T, len(g)
        lr, lr_max = lr * case.get("lr_multiplier", 1.0), lr_max * case.get("lr_multiplier", 1.0)
        nonfinite = sum(not math.isfinite(a) for a in g)
        if nonfinite and case.get("nonfinite") == "skip":
            return 0, 0, nonfinite, True
        self.t += 1
        if case.get("grad_clip"):
            g = clipped(T, g, case["grad_clip"], math.sqrt(math.fsum(a * a for a in g)))
        u = self.direction(g)
        if case.get("update_rms_clip"):
            u = clipped(T, u, case["update_rms_clip"], math.sqrt(math.fsum(a * a for a in u) / n))

        x = [f32_of(f32_bits(a) + b) for a, b in zip(self.x, self.low)] if case.get("rounding") == "split" else self.x
        pull = [T.sub(a, b) for a, b in zip(x, self.x0)] if case["decay"] in ("anchored", "selective") else x
        active = sum(product_sign(T, u[i], pull[i]) == 1 for i in range(n))
        weight_decay = case["weight_decay"] * decay_factor
        if case["decay"] == "selective":
            new, decayed = self.project(x, g, u, T.of(lr), weight_decay)
        else:
            wd = T.of(coupled_weight_decay(case["coupling"], weight_decay, lr, lr_max))
            on = self.mask(u, g, pull)
            decayed = sum(on)
            new = [T.fma(-T.of(lr), T.fma(wd, pull[i] if on[i] else 0.0, u[i]), x[i]) for i in range(n)]
        self.store(new)
        return decayed, active, nonfinite, False

    def mask(self, u, g, pull):
        T, case, n = self.T, self.case, len(u)
        by = self.moments["m"] if case.get("mask") == "momentum" else u
        if case["decay"] in ("none", "decoupled"):
            return [case["decay"] == "decoupled"] * n
        if case["decay"] == "random":
            key = key_of(case.get("seed", 0), RANDOM_DECAY, self.t, "x")
            odds = math.floor(case["density"] * 2**24 + 0.5)
            return [random_bits(key, i) >> 8 < odds for i in range(n)]
        if case["decay"] == "shuffled":
            key, odds = key_of(case.get("seed", 0), RANDOM_DECAY, self.t, "x"), self.odds(by, pull)
            return [random_bits(key, i) >> 8 < odds[i] for i in range(n)]
        if case["decay"] == "layerwise":
            parts = [T.flush(a) * T.flush(b) for a, b in zip(u, pull)]
            return [clear(math.fsum(parts), parts) >= 0] * n
        if case["decay"] == "opposed":
            return [product_sign(T, a, b) == -1 for a, b in zip(by, pull)]
        other = g if case["decay"] == "gradient" else by
        return [product_sign(T, a, b) in (0, 1) for a, b in zip(other, pull)]

    def odds(self, by, pull):
        """Of each coordinate: how often cautious decay strikes among those of about its size."""
        strikes = [product_sign(self.T, a, b) in (0, 1) for a, b in zip(by, pull)]
        bins = [size_bin(self.T, a) for a in pull]
        groups, group = [{0}], set()
        for size in sorted(set(bins) - {0}, reverse=True):
            group.add(size)
            if sum(a in group for a in bins) >= 64:
                groups.append(group)
                group = set()
        if group and len(groups) > 1:
            groups[-1] |= group
        else:
            groups.append(group)
        result = [0] * len(by)
        for group in groups:
            members = [i for i, size in enumerate(bins) if size in group]
            for i in members:
                result[i] = math.floor(sum(strikes[k] for k in members) / len(members) * 2**24 + 0.5)
        return result

    def project(self, x, g, u, lr, weight_decay):
        """Selective projection decay."""
        T = self.T
        y = [T.fma(-lr, a, b) for a, b in zip(u, x)]
        before, after = [T.sub(a, b) for a, b in zip(x, self.x0)], [T.sub(a, b) for a, b in zip(y, self.x0)]
        parts = [a * b for a, b in zip(g, before)]
        r = 0.0
        if clear(math.fsum(parts), parts) > 0:
            old, new = (math.sqrt(math.fsum(a * a for a in d)) for d in (before, after))
            r = max(0.0, min(1.0, (new - old) / new)) if new > 0 else 0.0
        k = T.of(weight_decay * r)
        return [T.fma(-k, a, b) for a, b in zip(after, y)], len(x) if k > 0 else 0

    def store(self, new):
        """The one rounding into the stored type."""
        case = self.case
        if case["dtype"] != "bf16":
            self.x = new
        elif case["rounding"] == "nearest":
            self.x = [bf16_nearest(a) for a in new]
        elif case["rounding"] == "split":
            self.x, self.low = map(list, zip(*(bf16_split(a) for a in new)))
        else:
            key = key_of(case.get("seed", 0), STOCHASTIC_ROUNDING, self.t, "x")
            self.x = [bf16_stochastic(a, key, i) for i, a in enumerate(new)]
