"""Recorded gradients through any recipe, as `cautious replay` does with files: the same bits (docs/spec.md, section 15)."""
from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional, Sequence, Union

import numpy as np

from . import _core
from .arrays import shared
from .recipe import made, settings_of


class Replay(NamedTuple):
    """Of T steps: `x` after the last one, `state` ("m", "v", "low"), per step how many coordinates decayed and how many were
    active, and x after every step if it was asked for."""
    x: np.ndarray
    state: Dict[str, np.ndarray]
    ratio: np.ndarray
    ratio_strict: np.ndarray
    trajectory: Optional[np.ndarray] = None


def replay(x: Any, g: Any, recipe: str = "adamw decay=cautious", *, lr: Union[float, Sequence[float]],
           lr_max: Optional[float] = None, decay_factor: Union[float, Sequence[float]] = 1.0,
           density: Optional[Sequence[float]] = None, x0: Any = None, dtype: Optional[str] = None,
           trajectory: bool = False, **options: Any) -> Replay:
    """Gradients g [T, *shape of x] through a recipe; x and g stay as they are. lr, decay_factor: a number, or one per step;
    lr_max is the largest lr unless given. density: of the decay `random`, per step. x0: the anchor. dtype="bf16": x is
    uint16. Options are those of Optimizer.

    >>> import numpy as np, cautious
    >>> x, g = np.full(3, 2.0), np.stack([np.ones(3), -np.ones(3)])
    >>> result = cautious.replay(x, g, "sgd decay=cautious weight_decay=1", lr=0.5, trajectory=True)
    >>> result.x, result.ratio          # x decays in the first step, and not when the update grows it
    (array([1., 1., 1.]), array([1., 0.]))
    """
    start, element = shared(x, "x", dtype)
    bits = element == "bf16" and getattr(g, "dtype", None) == np.uint16
    rows, of = shared(g, "g", "bf16" if bits else None)
    if rows.ndim == 0 or rows.shape[1:] != start.shape:
        raise ValueError(f"g has shape {list(rows.shape)}; expected [T, {', '.join(map(str, start.shape))}], T steps of x")
    steps = len(rows)
    rates, factors = _per_step("lr", lr, steps), _per_step("decay_factor", decay_factor, steps)
    densities = None if density is None else _per_step("density", density, steps)
    peak = float(rates.max(initial=0)) if lr_max is None else lr_max

    core = _core.Core(_core.everything(str(made(recipe))), settings_of(options.items()))
    now, gradient = start.copy(), np.empty(start.shape, rows.dtype)
    core.add("x", list(now.shape), element, of, now.ctypes.data, gradient.ctypes.data, "")
    if x0 is not None:
        anchor, kind = shared(x0, "x0", dtype)
        if anchor.shape != now.shape or kind != element:
            raise ValueError(f"x0 is {kind} {list(anchor.shape)}; expected that of x, {element} {list(now.shape)}")
        core.set_anchor(0, anchor.ctypes.data)
    ratios = np.full((2, steps), np.nan)
    path = np.empty((steps, *now.shape), now.dtype) if trajectory else None
    for t in range(steps):
        gradient[...] = rows[t]
        if densities is not None:
            core.set_density(0, float(densities[t]))
        core.step(float(rates[t]), peak, float(factors[t]), [])
        _, skipped, _, numbers = core.report()
        count, decayed, active = numbers[-1, :3]
        if not skipped and count:
            ratios[:, t] = decayed / count, active / count
        if path is not None:
            path[t] = now
    state = {name: array.copy() for name, array in core.state(0) if name != "x0"}
    return Replay(now, state, ratios[0], ratios[1], path)


def _per_step(what: str, value: Any, steps: int) -> np.ndarray:
    numbers = np.asarray(value, np.float64)
    if numbers.ndim == 0:
        return np.full(steps, float(numbers))
    if numbers.shape != (steps,):
        raise ValueError(f"{what} has shape {list(numbers.shape)}; expected a number, or {steps}, one per step of g")
    return numbers
