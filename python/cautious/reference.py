"""Cautious weight decay in plain PyTorch: docs/spec.md as tensor operations, to read, to copy and to check others against.

    x <- x - lr (u + wd 1(u x >= 0) x)            decay only where direction and parameter agree in sign

Up to the line "end of the core" this is all that AdamW, Lion, SGD, SGDM and Muon need; then come the other decays, functions K
and roundings, step() and an Optimizer. On the CPU the bits are those of the C++ library, but for sums over a tensor and matrix
products (docs/reference.md). Needs torch >= 1.13 alone, on any device that has float64. Not fast.
"""
import math

import torch

try:
    from . import reference_bits as bits
    from .reference_recipe import check_rates, coupled, one_of, parse
except ImportError:  # three files, copied out of the package
    import reference_bits as bits
    from reference_recipe import check_rates, coupled, one_of, parse

# ---- Algorithm 1 -------------------------------------------------------------------------------------------------------------


def opposite(u, x):
    """Whether the exact product u x is negative. By signs: a product of small numbers underflows to -0, and -0 >= 0 holds."""
    return ((u > 0) & (x < 0)) | ((u < 0) & (x > 0))


def algorithm1(x, u, pull, on, lr, wd):
    """x - lr (u + wd [on] pull), rounded once. CWD: pull is x, on is ~opposite(u, x). AdamW: on is all true."""
    return fma(-lr, fma(wd, torch.where(on, pull, torch.zeros_like(pull)), u), x)


# ---- rules: which direction? From fields f, the step t from 1, the gradient and the moments to u and the new moments ---------


def sgd(f, t, g, m, v):
    return g, m, v


def sgdm(f, t, g, m, v):
    m = mix(m, g, f["beta"])
    return m, m, v


def adam(f, t, g, m, v):
    m, v = mix(m, g, f["beta1"]), mix(v, mul(g, g), f["beta2"])
    c1, c2 = unbias(f["beta1"], t), unbias(f["beta2"], t)
    e = number(f["eps"] / c1, g).clamp(min=torch.finfo(g.dtype).tiny)  # so that 0 / 0 is 0 when eps is 0
    return div(m, fma(number(math.sqrt(c2) / c1, g), v.sqrt(), e)), m, v


def lion(f, t, g, m, v):
    z, m, v = lion_k(f, t, g, m, v)
    return sign(z), m, v


def lion_k(f, t, g, m, v):  # u: the subgradient of K at the first of these, shaped()
    return mix(m, g, f["beta1"]), mix(m, g, f["beta2"]), v


def muon(f, t, g, m, v):  # u: the orthogonal() factor of the first of these
    m = fma(number(f["beta"], g), m, g)
    return (fma(number(f["beta"], g), m, g) if f["nesterov"] == "on" else m), m, v


# ---- arithmetic: one operation of the compute type, float32 or float64, at a time --------------------------------------------


def mix(m, g, beta):
    return fma(number(beta, g), m, mul(number(1 - beta, g), g))


def exact(a):
    """Whether every rounding is spelled out, at several times the price: on the CPU. Elsewhere denormals are numbers and last
    bits may differ (docs/spec.md, section 13). Made to return False, the core needs no other file."""
    return a.device.type == "cpu"


def fma(a, b, c):
    """a b + c, rounded once."""
    return bits.fma(a, b, c) if exact(c) else torch.addcmul(c, a, b)


def mul(a, b):
    return rounded(a.double() * b.double(), b.dtype) if exact(b) else a * b


def div(a, b):
    return rounded(a.double() / b.double(), b.dtype) if exact(b) else a / b


def rounded(a, T):
    """f64 numbers as T, to nearest, denormals to zeros."""
    return bits.rounded(a, T) if exact(a) else a.to(T)


def number(a, like):
    """A coefficient: computed in f64, rounded once."""
    return rounded(torch.full((), a, dtype=torch.float64, device=like.device), like.dtype)


def sign(z):
    return torch.where(z > 0, torch.ones_like(z), torch.where(z < 0, -torch.ones_like(z), z))


def unbias(beta, t):
    """1 / (1 - beta^t), by squaring: the same bits everywhere, unlike pow()."""
    power = 1.0
    while t > 0:
        power, t, beta = power * beta if t & 1 else power, t >> 1, beta * beta
    return 1 / (1 - power)


# ---- Muon's orthogonal factor. The products are torch's, so the last bits are the machine's ----------------------------------


def matrices(shape, blocks):
    """Count, rows and columns of the matrices that a tensor of this shape is."""
    if len(shape) < 2:
        raise ValueError(f"a tensor of shape {list(shape)} is no matrix; give vectors another recipe")
    if shape[0] % blocks:
        raise ValueError(f"a tensor of shape {list(shape)} cannot be cut into {blocks} blocks along its first side")
    rows, rest = shape[0] // blocks, shape[1:]
    if blocks > 1 and rows == 1 and len(rest) > 1:
        rows, *rest = rest
    return blocks, rows, math.prod(rest)


def orthogonal(z, f):
    """s U V^T of every matrix z = U S V^T of a tensor; NaN for a matrix with a NaN or infinite entry."""
    count, rows, cols = matrices(z.shape, f["blocks"])
    wide, tiny = z.reshape(count, rows, cols).double(), torch.finfo(torch.float64).tiny
    largest = wide.abs().amax((1, 2), keepdim=True)
    finite = largest.isfinite()
    wide = torch.where(finite, wide, torch.zeros_like(wide))
    if f["schedule"] == "exact":
        U, S, Vh = torch.linalg.svd(wide, full_matrices=False)
        x = (U * (S > max(rows, cols) * torch.finfo(z.dtype).eps * S.amax(1, keepdim=True)).unsqueeze(1)) @ Vh
    else:
        norm = largest * (wide / largest.clamp(min=tiny)).square().sum((1, 2), keepdim=True).sqrt()  # no square overflows
        divisor = norm.clamp(min=max(f["eps"], tiny)) * {"polar-express": 1.02, "polar-express-8": 1.01}.get(f["schedule"], 1)
        x = (wide / divisor).to(z.dtype)
        x = x.mT if rows > cols else x
        if f["schedule"] == "turbo":
            sums = torch.maximum((x @ x.mT).double().abs().sum(2, keepdim=True), (f["eps"] / divisor).square())
            x = x * torch.where(sums > 0, sums.rsqrt(), torch.zeros_like(sums)).to(z.dtype)
        for a, b, c in f["quintics"]:
            A = x @ x.mT
            x = a * x + (b * A + c * (A @ A)) @ x
        x = x.mT if rows > cols else x
    scale = {"none": 1, "jordan": math.sqrt(max(1, rows / cols)), "rms": 0.2 * math.sqrt(max(rows, cols))}[f["scale"]]
    return rounded(torch.where(finite, x.double() * scale, math.nan * wide), z.dtype).reshape(z.shape)


# ---- end of the core ---------------------------------------------------------------------------------------------------------


def shaped(f, z):
    """Stage two of a direction: the orthogonal factor, or a subgradient of Lion-K's function K at z."""
    k = {1: "l1", 2: "l2"}.get(f["p"], "lp") if f.get("k") == "lp" else f.get("k")
    if z.numel() == 0 or f["rule"] not in ("lion-k", "muon"):
        return z
    if f["rule"] == "muon" or k == "nuclear":
        return orthogonal(z, f)
    wide, zero, e = z.double(), torch.zeros_like(z), number(f["e"], z).clamp(min=torch.finfo(z.dtype).tiny)
    size = torch.where(z == z, wide.abs(), torch.zeros_like(wide))
    most = size.max()
    part = wide.abs() / torch.where(most == 0, torch.ones_like(most), most)
    if k == "l2":
        norm = torch.where(most.isinf(), most, most * part.square().sum().sqrt())
        inverse = rounded(torch.where(norm == 0, torch.ones_like(norm), 1 / norm), z.dtype)
        return torch.where(inverse.isinf(), rounded(wide / norm, z.dtype), mul(z, inverse))
    if k == "lp":
        root = part.pow(f["p"]).sum().pow(1 / f["p"])
        return torch.where(most == 0, z, rounded(sign(wide) * (part / root).pow(f["p"] - 1), z.dtype))
    if k == "huber":
        return div(z, e).clamp(-1, 1)
    if k == "relativistic":
        low, high = (1e-15, 1e18) if z.dtype == torch.float32 else (1e-140, 1e150)
        length = fma(z, z, mul(e, e)).sqrt()
        usual = (length > number(low, z)) & (length < number(high, z))
        far = rounded(wide / torch.hypot(wide, torch.full_like(wide, f["e"])), z.dtype)
        return torch.where(usual, div(z, length), far)
    if k == "threshold":
        return torch.where(z.abs() > e, sign(z), torch.where(z == z, zero, z))
    if k == "topk":
        size = torch.where(z == z, size, torch.full_like(size, math.inf)).flatten()
        kept = torch.zeros_like(size, dtype=torch.bool)
        kept[size.sort(descending=True, stable=True).indices[: math.ceil(f["fraction"] * size.numel())]] = True
        return sign(torch.where(kept.view_as(z) | (z != z), z, zero))
    return sign(z)


def mask(f, u, g, x, pull, m, random):
    """Which coordinates decay. u, g, x, pull and m in the compute type; random: 24 bits per coordinate, when called."""
    decay, by = f["decay"], m if f.get("mask") == "momentum" else u
    if decay in ("none", "decoupled"):
        return torch.full_like(x, decay == "decoupled", dtype=torch.bool)
    if decay == "random":
        return random() < math.floor(f["density"] * 2**24 + 0.5)
    if decay == "shuffled":
        return random() < bits.odds_by_size(x, ~opposite(by, x))
    if decay == "layerwise":
        return ((u.double() * x.double()).sum() >= 0).expand_as(x)
    if decay == "opposed":
        return opposite(by, pull)
    return ~opposite(g if decay == "gradient" else by, pull)  # cautious, anchored, gradient


def projected(x, g, u, x0, lr, weight_decay):
    """Selective projection decay: the new x, where it decayed, and the budget. Couplings do not apply."""
    y = fma(-lr, u, x)
    d, w = rounded(x.double() - x0.double(), x.dtype), rounded(y.double() - x0.double(), x.dtype)
    before, after = d.double().square().sum().sqrt(), w.double().square().sum().sqrt()
    r = torch.where(after > 0, ((after - before) / after).clamp(0, 1), torch.zeros_like(after))
    k = weight_decay * torch.where((g.double() * d.double()).sum() > 0, r, torch.zeros_like(r))
    on = (rounded(k, x.dtype) > 0).expand_as(x)
    return fma(-rounded(k, x.dtype), w, y), on, k * w.double().abs().sum()


def limited(size, limit):
    """What brings a size down to its limit; 1 if it is not above it or not finite."""
    return torch.where(size.isfinite() & (size > limit), limit / size, torch.ones_like(size))


RULES = {"sgd": (sgd, ""), "sgdm": (sgdm, "m"), "adam": (adam, "mv"), "lion": (lion, "m"), "lion-k": (lion_k, "m"),
         "muon": (muon, "m")}


@torch.no_grad()
def step(recipe, x, g, state, *, lr, lr_max=0.0, decay_factor=1.0, seed=0, tensor=0, rounding="nearest", moments="f32",
         clip_scale=1.0, update_rms_clip=0.0):
    """One step of one parameter: changes x and state ("step", "m", "v", "x0", "low") in place, or raises before it has.

    recipe: "adamw decay=cautious weight_decay=0.1". lr_max: peak of the schedule, for the couplings. tensor: hash_of(name).
    rounding (nearest, stochastic, split): of bf16 parameters. clip_scale: what global-norm clipping multiplies gradients by.
    Returns the counts and sums of docs/spec.md, section 12, as tensors of one number.
    """
    f = parse(recipe)
    check_rates(lr=lr, lr_max=lr_max, decay_factor=decay_factor, update_rms_clip=update_rms_clip)
    one_of("rounding", rounding, ("nearest", "stochastic", "split"))
    one_of("moments", moments, ("f32", "bf16"))
    T, narrow = (x.dtype if x.dtype == torch.float64 else torch.float32), x.dtype == torch.bfloat16
    if x.dtype not in (torch.float32, torch.float64, torch.bfloat16) or g.dtype not in (x.dtype, T) or g.shape != x.shape:
        raise ValueError(f"x is {x.dtype} {list(x.shape)}, g is {g.dtype} {list(g.shape)}; valid: the same shape, and float32, "
                         "float64 or bfloat16 for both, or float32 beside bfloat16")
    projects, anchored = f["decay"] == "selective", f["decay"] in ("selective", "anchored")
    wd = f["weight_decay"] * decay_factor
    wd = wd if projects else coupled(f["coupling"], wd, lr, lr_max) if lr > 0 and f["decay"] != "none" else 0.0

    # Everything as the compute type sees it.
    t, (rule, kept) = state.get("step", 0) + 1, RULES[f["rule"]]
    low = state.get("low", torch.zeros_like(x, dtype=torch.int16)) if narrow and rounding == "split" else None
    x0 = state.get("x0", x.detach().clone()) if anchored else None
    old = bits.joined(x.contiguous(), low.contiguous()) if low is not None else x.contiguous()
    old, grad = rounded(old.double(), T), rounded(g.double() * clip_scale, T)
    moment = {name: rounded(state[name].double(), T) if name in state else torch.zeros_like(old) for name in kept}

    u, m, v = rule(f, t, grad, moment.get("m"), moment.get("v"))
    u = shaped(f, u)
    if update_rms_clip > 0:
        u = rounded(limited(u.double().square().sum().div(u.numel()).sqrt(), update_rms_clip) * u.double(), T)
    pull = rounded(old.double() - x0.double(), T) if anchored else old
    if projects:
        new, on, budget = projected(old, grad, u, x0, number(lr, old), wd)
    else:
        on = mask(f, u, grad, old, pull, m, lambda: bits.chance(x, bits.key_of(seed, 1, t, tensor)))
        new = algorithm1(old, u, pull, on, number(lr, old), number(wd, old))
        budget = lr * wd * torch.where(on, pull.double().abs(), torch.zeros_like(pull, dtype=torch.float64)).sum()

    state["step"] = t
    for name, value in zip("mv", (m, v)):
        if name in kept:
            first = torch.bfloat16 if moments == "bf16" and T == torch.float32 else T
            state[name] = value.to(state[name].dtype if name in state else first)
    if anchored:
        state["x0"] = x0
    if low is not None:
        new, state["low"] = bits.split(new)
    elif narrow and rounding == "stochastic":
        new = bits.stochastic(new, bits.key_of(seed, 2, t, tensor))
    x.copy_(new)  # the one rounding into a bf16 parameter: to nearest
    return {"count": torch.full((), x.numel(), device=x.device), "decayed": on.sum(),
            "active": opposite(-u, pull).sum(), "nonfinite": (~g.isfinite()).sum(), "budget": budget,
            **{name: value.double().square().sum() for name, value in (("x2", old), ("g2", g), ("u2", u))}}


class Optimizer(torch.optim.Optimizer):
    """step() as a torch optimizer. params: tensors, groups, or (name, tensor) pairs, whose names choose the random bits. A
    group may have its own recipe, lr, lr_max (0: the largest lr so far) and decay_factor. options: the other keywords of
    step(). `report` has the counts and sums of the last step, of all tensors."""

    def __init__(self, params, recipe="adamw decay=cautious", lr=1e-3, lr_max=0.0, decay_factor=1.0, grad_clip=0.0, **options):
        params = list(params)
        pairs = params if params and isinstance(params[0], tuple) else []
        self.names, self.grad_clip, self.options, self.report = {p: name for name, p in pairs}, grad_clip, options, {}
        defaults = {"recipe": recipe, "lr": lr, "lr_max": lr_max, "decay_factor": decay_factor}
        super().__init__([p for _, p in pairs] or params, defaults)
        for group in self.param_groups:
            parse(group["recipe"])

    @torch.no_grad()
    def step(self, closure=None):
        loss = torch.enable_grad()(closure)() if closure else None
        taking_part = [(i, group, p) for i, (group, p) in enumerate(self.all()) if p.grad is not None]
        squares = [p.grad.double().square().sum() for _, _, p in taking_part]
        clip = limited(sum(squares).sqrt(), self.grad_clip) if self.grad_clip > 0 and squares else 1.0
        for group in self.param_groups:
            group["highest_lr"] = max(group.get("highest_lr", 0.0), group["lr"])
        reports = [step(group["recipe"], p, p.grad, self.state[p], lr=group["lr"], clip_scale=clip,
                        lr_max=group["lr_max"] or group["highest_lr"], decay_factor=group["decay_factor"],
                        tensor=bits.hash_of(self.names.get(p, str(i))), **self.options) for i, group, p in taking_part]
        self.report = {name: sum(report[name] for report in reports) for name in reports[0]} if reports else {}
        return loss

    def load_state_dict(self, state_dict):
        super().load_state_dict(state_dict)  # which makes every tensor of the state the type of its parameter
        saved = [i for group in state_dict["param_groups"] for i in group["params"]]
        for i, (_, p) in zip(saved, self.all()):
            for name, value in state_dict["state"].get(i, {}).items():
                self.state[p][name] = value.to(p.device, copy=True) if torch.is_tensor(value) else value

    def all(self):
        return [(group, p) for group in self.param_groups for p in group["params"]]
