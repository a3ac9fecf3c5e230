"""Parameters that the C++ library cannot reach: one call of cautious.reference each, in PyTorch's operations on their own
device."""
from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

import torch

from .. import _core, reference
from ..report import Tally

SUMS = ("x2", "g2", "u2", "budget")
COUNTS = ("count", "decayed", "active", "nonfinite")


def begin(tensor: torch.Tensor, recipe: _core.Recipe) -> Dict[str, Any]:
    """The state before the first step; reference.step() makes the moments."""
    return {"x0": tensor.detach().clone()} if _core.has_anchor(recipe) else {}


def nonfinite(entries: Sequence[Any], policy: str) -> bool:
    """Whether a NaN or infinite gradient forbids the step; an error under that policy."""
    for entry in entries:
        if entry.slot >= 0 or entry.tensor.grad is None:
            continue
        bad = int(torch.isfinite(entry.tensor.grad).logical_not().sum())
        if bad and policy == "error":
            raise RuntimeError(f"the gradient of '{entry.name}' has {bad} non-finite entries of {entry.tensor.numel()}; "
                               "nothing was changed")
        if bad:
            return True
    return False


def step(entries: Sequence[Any], states: Dict[torch.Tensor, Dict[str, Any]], recipes: List[_core.Recipe],
         rates: List[Tuple[float, float, float]], settings: Dict[str, Any],
         amounts: Sequence[Tuple[float, float]]) -> Dict[str, Tally]:
    """`amounts`: of each entry, density and a factor on its weight decay; none: those of its group."""
    lines = [str(recipe) for recipe in recipes]
    options = {name: settings[name] for name in ("seed", "rounding", "moments", "update_rms_clip")}
    seen = {}
    for at, entry in enumerate(entries):
        if entry.slot >= 0 or entry.tensor.grad is None:
            continue
        line, (lr, lr_max, factor) = lines[entry.group], rates[entry.group]
        if amounts:
            density, own = amounts[at]
            factor *= own
            if "decay=random" in line.split():
                line = str(_core.recipe(line, [("density", repr(density))]))
        seen[entry.name] = reference.step(line, entry.tensor, entry.tensor.grad, states[entry.tensor], lr=lr,
                                          lr_max=lr_max, decay_factor=factor, tensor=reference.bits.hash_of(entry.name), **options)
    return {name: Tally(*(int(found[key]) for key in COUNTS), *(float(found[key]) for key in SUMS))
            for name, found in seen.items()}
