"""Parameters that the C++ library cannot reach: one call of cautious.reference each, in PyTorch's operations on their own
device."""
from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

import torch

from .. import _core
from ..report import Tally

SUMS = ("x2", "g2", "u2", "budget")
COUNTS = ("count", "decayed", "active", "nonfinite")


def name_hash(name: str) -> int:
    """FNV-1a of the name's bytes, which chooses a tensor's random bits (docs/spec.md, section 10)."""
    found = 0xCBF29CE484222325
    for byte in name.encode():
        found = (found ^ byte) * 0x100000001B3 % 2**64
    return found


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
         rates: List[Tuple[float, float, float]], settings: Dict[str, Any]) -> Dict[str, Tally]:
    from .. import reference
    lines = [str(recipe) for recipe in recipes]
    options = {"seed": settings["seed"], "rounding": settings["rounding"]}
    for name, usual in (("moments", "f32"), ("update_rms_clip", 0.0)):
        if settings[name] != usual:
            options[name] = settings[name]
    seen = {}
    for entry in entries:
        if entry.slot >= 0 or entry.tensor.grad is None:
            continue
        lr, lr_max, factor = rates[entry.group]
        seen[entry.name] = reference.step(lines[entry.group], entry.tensor, entry.tensor.grad, states[entry.tensor], lr=lr,
                                          lr_max=lr_max, decay_factor=factor, tensor=name_hash(entry.name), **options)
    return {name: Tally(*(int(found[key]) for key in COUNTS), *(float(found[key]) for key in SUMS))
            for name, found in seen.items()}
