"""Replay written again from the specification, in plain numpy: no fused arithmetic, no tricks, no line shared with the program."""
import math

import numpy as np

MASK64 = (1 << 64) - 1
POLAR = {"schedule": "paper", "steps": 0, "scale": "none", "eps": 0, "blocks": 1, "coefficients": ""}
SCHEDULES = {  # a, b, c of each step
    "paper": [(3.4445, -4.7750, 2.0315)] * 5,
    "quintic": [(4.0848, -6.8946, 2.9270), (3.9505, -6.3029, 2.6377), (3.7418, -5.5913, 2.3037), (2.8769, -3.1427, 1.2046),
                (2.8366, -3.0525, 1.2012)],
    "polar-express": [(8.156554524902461, -22.48329292557795, 15.878769915207462),
                      (4.042929935166739, -2.808917465908714, 0.5000178451051316),
                      (3.8916678022926607, -2.772484153217685, 0.5060648178503393),
                      (3.285753657755655, -2.3681294933425376, 0.46449024233003106),
                      (2.3465413258596377, -1.7097828382687081, 0.42323551169305323)],
    "polar-express-8": [(8.2051, -22.9019, 16.4607), (4.0664, -2.8612, 0.5184), (3.9096, -2.8234, 0.5250),
                        (3.2856, -2.4153, 0.4853), (2.2779, -1.6198, 0.3985), (1.8726, -1.2307, 0.3585),
                        (1.8564, -1.2132, 0.3568), (1.875, -1.25, 0.375)],
    "cans": [(8.4703, -25.1081, 18.6293), (4.1828, -3.1087, 0.5806), (3.9619, -2.9541, 0.5630), (3.2866, -2.4647, 0.5074),
             (2.2737, -1.6447, 0.4162)],
}
SCHEDULES["turbo"] = SCHEDULES["quintic"][1:]
LARGER_NORM = {"polar-express": 1.02, "polar-express-8": 1.01}
FIELDS = {
    "sgd": {},
    "sgdm": {"beta": 0.9},
    "adam": {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8},
    "lion": {"beta1": 0.9, "beta2": 0.99},
    "lion-k": {"beta1": 0.9, "beta2": 0.99, "k": "l1", "p": 2, "e": 1e-3, "fraction": 0.1, **POLAR},
    "muon": {"beta": 0.95, "nesterov": "off", **POLAR},
}
RECIPES = {  # name -> rule, decay, coupling, weight decay
    "sgd": ("sgd", "decoupled", "plain", 1e-4),
    "sgdm": ("sgdm", "decoupled", "plain", 1e-4),
    "adam": ("adam", "none", "plain", 0),
    "adamw": ("adam", "decoupled", "plain", 0.1),
    "adamc": ("adam", "decoupled", "corrected", 0.1),
    "lion": ("lion", "decoupled", "plain", 0.1),
    "lion-k": ("lion-k", "decoupled", "plain", 0.1),
    "muon": ("muon", "decoupled", "plain", 0.1),
}
COUPLED = {  # the factor on a decayed weight
    "plain": lambda lr, peak, wd: lr * wd,
    "corrected": lambda lr, peak, wd: lr * lr / peak * wd,
    "independent": lambda lr, peak, wd: lr / peak * wd,
    "squared": lambda lr, peak, wd: lr * lr * wd,
}


def subgradient(f, z):
    k, size = f["k"], np.abs(z)
    if k == "nuclear":
        return polar(f, z)
    if k == "l1":
        return np.sign(z)
    if k in ("l2", "lp"):
        p = 2 if k == "l2" else f["p"]
        norm = np.sum(size.astype(np.float64) ** p) ** (1 / p)
        return np.sign(z) * (size / norm) ** (p - 1) if norm > 0 else z * 0
    if k == "huber":
        return np.clip(z / f["e"], -1, 1)
    if k == "relativistic":
        return z / np.sqrt(z * z + f["e"] ** 2)
    if k == "threshold":
        return np.where(size > f["e"], np.sign(z), 0)
    keep = np.argsort(-size.ravel(), kind="stable")[:math.ceil(f["fraction"] * z.size)]
    u = np.zeros(z.size, z.dtype)
    u[keep] = np.sign(z.ravel()[keep])
    return u.reshape(z.shape)


def polar_of_matrix(f, z):
    """scale * U V^T of z = U S V^T, or what Newton-Schulz makes of it: one product after the other, nothing saved."""
    rows, cols = z.shape
    scale = {"none": 1, "jordan": max(1, rows / cols) ** 0.5, "rms": 0.2 * max(rows, cols) ** 0.5}[f["scale"]]
    norm = max(np.linalg.norm(z), f["eps"])
    if norm == 0:
        return z * 0
    if f["schedule"] == "exact":
        left, _, right = np.linalg.svd(z, full_matrices=False)
        return scale * (left @ right)
    if f["schedule"] == "custom":
        steps = np.array([float(word) for word in f["coefficients"].split(",")]).reshape(-1, 3).tolist()
    else:
        steps = list(SCHEDULES[f["schedule"]])
    if f["steps"]:
        steps = (steps + [steps[-1]] * f["steps"])[:f["steps"]]
    x = z / (norm * LARGER_NORM.get(f["schedule"], 1))
    if rows > cols:
        x = x.T
    if f["schedule"] == "turbo":
        sums = np.abs(x @ x.T).sum(axis=1, keepdims=True)
        x = x / np.sqrt(np.maximum(sums, (f["eps"] / norm) ** 2))
    for a, b, c in steps:
        gram = x @ x.T
        x = a * x + b * gram @ x + c * gram @ gram @ x
    return scale * (x.T if rows > cols else x)


def polar(f, z):
    """Of a tensor: [out, in, ...] is a matrix of out rows, or a stack of `blocks` of them."""
    shape = z.shape
    if z.size == 0:
        return z
    if f["blocks"] > 1:
        z = z.reshape(f["blocks"], -1, *shape[1:])
        z = z[:, 0] if z.shape[1] == 1 and z.ndim > 3 else z
    else:
        z = z[None]
    return np.stack([polar_of_matrix(f, block.reshape(block.shape[0], -1)) for block in z]).reshape(shape)


def direction(rule, f, g, m, v, t):
    """u; m and v are updated in place."""
    if rule == "sgd":
        return g
    if rule == "sgdm":
        m[...] = f["beta"] * m + (1 - f["beta"]) * g
        return m.copy()
    if rule == "adam":
        m[...] = f["beta1"] * m + (1 - f["beta1"]) * g
        v[...] = f["beta2"] * v + (1 - f["beta2"]) * g * g
        below = np.sqrt(v / (1 - f["beta2"] ** t)) + f["eps"]
        return np.where(below == 0, 0, m / (1 - f["beta1"] ** t) / np.where(below == 0, 1, below))
    if rule == "muon":
        m[...] = f["beta"] * m + g
        return polar(f, f["beta"] * m + g if f["nesterov"] == "on" else m)
    z = f["beta1"] * m + (1 - f["beta1"]) * g
    m[...] = f["beta2"] * m + (1 - f["beta2"]) * g
    return np.sign(z) if rule == "lion" else subgradient(f, z)


def mix64(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
    return z ^ (z >> 31)


def random_key(seed, purpose, t):
    name_hash = ((0xCBF29CE484222325 ^ ord("x")) * 0x100000001B3) & MASK64
    key = mix64((seed + 0x9E3779B97F4A7C15) & MASK64)
    for word in (purpose, t, name_hash):
        key = mix64((key + word) & MASK64)
    return key


def bits(key, j):
    with np.errstate(over="ignore"):
        j = j.astype(np.uint64)
        z = (j.astype(np.uint32) ^ np.uint32(key & 0xFFFFFFFF)) * np.uint32(0x9E3779B1)
        z ^= z >> np.uint32(15)
        z += np.uint32(key >> 32) + (j >> np.uint64(32)).astype(np.uint32) * np.uint32(0x85EBCA6B)
        for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
            z = (z ^ (z >> np.uint32(shift))) * np.uint32(factor)
        return z ^ (z >> np.uint32(16))


def random_bits(seed, purpose, t, n):
    return bits(random_key(seed, purpose, t), np.arange(n))


def rounding_bits(seed, t, n):
    """What stochastic rounding adds: two coordinates, 16 apart in a block of 256, share a word of the block."""
    key, one = random_key(seed, 2, t), np.uint32(1)
    block, position = np.divmod(np.arange(n), 256)
    spread = bits(0, position // 32 * 16 + position % 16 + 1) | one
    word = spread * (bits(key, 2 * block) | one) + bits(key, 2 * block + 1)
    return np.where(position % 32 < 16, (word ^ (word >> np.uint32(16))) & np.uint32(0xFFFF), word >> np.uint32(16))


def odds(u, x):
    """Of 2^24, per coordinate: the frequency of the cautious mask among those of about its size, which share exponent and three
    bits; from the largest down at least 64 together, zero alone."""
    exponent = np.frexp(np.abs(x))[1]
    size = np.where(x == 0, 0, 1 + 8 * (exponent + 200) + np.floor(16 * np.abs(x) / 2.0**exponent - 8)).astype(int)
    strikes, result, groups = u * x >= 0, np.zeros(x.shape), [[0], []]
    for one in np.unique(size[size > 0])[::-1]:
        groups[-1].append(one)
        if np.isin(size, groups[-1]).sum() >= 64:
            groups.append([])
    if len(groups) > 2:
        groups[-2] += groups.pop()
    for group in groups:
        members = np.isin(size, group)
        if members.any():
            result[members] = np.floor(np.mean(strikes[members]) * 2**24 + 0.5)
    return result


def mask(decay, u, m, g, x, pull, f, seed, t):
    if decay == "layerwise":
        return np.full(x.shape, np.sum(u * x) >= 0)
    if decay in ("random", "shuffled"):
        chance = (random_bits(seed, 1, t, x.size) >> np.uint32(8)).reshape(x.shape)
        return chance < (math.floor(f["density"] * 2**24 + 0.5) if decay == "random" else odds(u, x))
    return {"none": np.zeros(x.shape, bool), "decoupled": np.ones(x.shape, bool), "direction": u * x >= 0,
            "momentum": m * x >= 0, "opposed": u * x < 0, "gradient": g * x >= 0, "anchored": u * pull >= 0}[f.get("mask", "direction") if decay == "cautious" else decay]


def selective(x, u, g, x0, lr, wd):
    y = x - lr * u
    far, near = np.linalg.norm((y - x0).astype(np.float64)), np.linalg.norm((x - x0).astype(np.float64))
    r = min(max((far - near) / far, 0), 1) if far > 0 else 0
    if not np.sum(g.astype(np.float64) * (x - x0)) > 0:
        r = 0
    return y - x.dtype.type(wd * r) * (y - x0), np.full(x.shape, r > 0)


def replay(x, g, lr, optimizer="adamw", decay=None, weight_decay=None, coupling=None, lr_max=None, x0=None, seed=0, grad_clip=0,
           update_rms_clip=0, factors=None, density=None, rounding=lambda x: x, **fields):
    """x and g in float64 or float32, which is also the type of the arithmetic; lr [T]. Returns what OUT holds."""
    rule, named_decay, named_coupling, named_wd = RECIPES[optimizer]
    decay, coupling = decay or named_decay, coupling or named_coupling
    weight_decay = named_wd if weight_decay is None else weight_decay
    kind = x.dtype.type
    peak = lr_max or (max(lr) if len(lr) else 0)
    start = x if x0 is None else x0
    m, v = np.zeros_like(x), np.zeros_like(x)
    f = {**FIELDS[rule], **fields}
    ratio, strict, trajectory = [], [], []
    for t, (step_g, step_lr) in enumerate(zip(g, lr), start=1):
        if density is not None:
            f["density"] = density[t - 1]
        norm = np.linalg.norm(step_g.astype(np.float64).ravel())
        if grad_clip and norm > grad_clip:
            step_g = step_g * kind(grad_clip / norm)
        u = np.asarray(direction(rule, f, step_g, m, v, t), dtype=kind)
        rms = np.sqrt(np.mean(u.astype(np.float64) ** 2)) if u.size else 0
        if update_rms_clip and rms > update_rms_clip:
            u = u * kind(update_rms_clip / rms)
        wd = weight_decay * (1 if factors is None else factors[t - 1])
        pull = x - start if decay in ("anchored", "selective") else x
        strict.append(np.mean(u * pull > 0) if x.size else np.nan)
        if decay == "selective":
            x, on = selective(x, u, step_g, start, kind(step_lr), wd)
        else:
            on = mask(decay, u, m, step_g, x, pull, f, seed, t)
            x = x - kind(step_lr) * u - kind(COUPLED[coupling](step_lr, peak, wd)) * np.where(on, pull, 0)
        x = rounding(x)
        ratio.append(np.mean(on) if x.size else np.nan)
        trajectory.append(x)
    state = {"sgd": {}, "adam": {"m": m, "v": v}}.get(rule, {"m": m})
    return {"x": x, **state, "ratio": np.array(ratio), "ratio_strict": np.array(strict),
            "trajectory": np.array(trajectory, dtype=kind).reshape(len(lr), *x.shape)}
