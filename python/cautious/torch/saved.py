"""State as tensors: views of what the core keeps, and saved states, ours and torch's own, checked before anything changes."""
from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

import numpy as np
import torch

from .. import _core
from ..recipe import settings_of
from .groups import ELEMENTS, FOREIGN, recipe_of

State = Dict[torch.Tensor, Dict[str, Any]]
DTYPES = {"float32": torch.float32, "float64": torch.float64, "uint16": torch.bfloat16, "int16": torch.int16}
OURS = {"exp_avg": "m", "exp_avg_sq": "v", "momentum_buffer": "m"}  # torch's names


def views(core: _core.Core, slot: int, shape: torch.Size) -> Dict[str, torch.Tensor]:
    """The core's own memory."""
    found = {}
    for name, array in core.state(slot):
        dtype = DTYPES[array.dtype.name]
        found[name] = torch.frombuffer(array, dtype=dtype).view(shape) if array.size else torch.empty(shape, dtype=dtype)
    return found


def put(core: _core.Core, slot: int, shape: torch.Size, state: Dict[str, Any]) -> None:
    for name, view in views(core, slot, shape).items():
        if name in state:
            view.copy_(state[name])
    core.set_steps(slot, int(state.get("step", 0)))


def moved(state: Dict[str, Any], device: torch.device) -> Dict[str, Any]:
    return {name: value.to(device, copy=True) if isinstance(value, torch.Tensor) else value for name, value in state.items()}


def expected(recipe: _core.Recipe, dtype: torch.dtype, settings: Dict[str, Any]) -> Dict[str, torch.dtype]:
    """The pieces of state that a parameter of this type has: asked of a core with one small matrix."""
    core = _core.Core(_core.everything(str(recipe)), settings_of(settings.items()))
    memory, element = np.zeros(1), ELEMENTS[dtype]
    blocks = next((int(value) for name, value, *_ in _core.recipe_fields(recipe) if name == "blocks"), 1)
    if blocks > 1:
        memory = np.zeros(blocks)
    core.add("x", [blocks, 1], element, element, memory.ctypes.data, 0, "")
    return {name: DTYPES[array.dtype.name] for name, array in core.state(0)}


def _adopted(saved: Dict[str, Any], group: Dict[str, Any], where: str) -> Dict[str, Any]:
    """A group of torch's Adam, AdamW or SGD: the entries that mean the same here."""
    for name in ("amsgrad", "maximize"):
        if saved.get(name):
            raise ValueError(f"{where}the state is of a torch optimizer with {name}=True, which has no counterpart here")
    if "dampening" in saved:
        beta, dampening = saved.get("momentum", 0), saved["dampening"]
        if saved.get("nesterov"):
            raise ValueError(f"{where}the state is of torch's SGD with nesterov=True, which has no counterpart here")
        if beta != 0 and dampening != beta:
            raise ValueError(f"{where}the state is of torch's SGD with momentum {beta} and dampening {dampening}: its buffer "
                             f"is a sum of gradients, {group['rule']}'s an average. With dampening 0, multiply buffers by "
                             f"{1 - beta:g}, divide lr by it, and set dampening to {beta} in the state")
        return {"lr": saved["lr"], **({"beta": beta} if "beta" in group and beta != 0 else {})}
    return {name: saved[name] for name in ("lr", "betas", "eps", "weight_decay") if name in saved and name in group}


def _entries(saved: Dict[str, Any], group: Dict[str, Any], where: str) -> Dict[str, Any]:
    if len(saved.get("params", ())) != len(group["params"]):
        raise ValueError(f"{where}the state has {len(saved.get('params', ()))} parameters, this optimizer "
                         f"{len(group['params'])}")
    if "rule" not in saved:
        own = _adopted(saved, group, where)
        return {**own, **{name: saved[name] for name in FOREIGN - {"params", "param_names"} if name in saved and name in group}}
    if saved["rule"] != group["rule"]:
        raise ValueError(f"{where}the state is of the rule '{saved['rule']}', this optimizer has '{group['rule']}'")
    for there, here in zip(saved["param_names"], group["param_names"]):
        if there != here:
            raise ValueError(f"{where}the state is of parameter '{there}' where this optimizer has '{here}'")
    return {name: value for name, value in saved.items() if name != "params"}


def _piece(what: str, value: Any, dtype: torch.dtype, shape: torch.Size, ours: bool) -> torch.Tensor:
    if not isinstance(value, torch.Tensor) or value.shape != shape:
        found = list(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
        raise ValueError(f"{what} is {found} in the state; the parameter is {list(shape)}")
    if ours and value.dtype != dtype:
        raise ValueError(f"{what} is {value.dtype} in the state; this optimizer needs {dtype}")
    return value.detach().to(dtype)


def _state(name: str, found: Dict[str, Any], pieces: Dict[str, torch.dtype], shape: torch.Size, ours: bool) -> Dict[str, Any]:
    renamed = {OURS.get(key, key): value for key, value in found.items()}
    if not ours and renamed.get("m", 0) is None:  # SGD before its first step with momentum
        return {}
    steps = renamed.pop("step", 1)
    needed = set(pieces) if ours else set(pieces) - {"x0", "low"}
    if set(renamed) != needed:
        raise ValueError(f"the state of '{name}' has {', '.join(sorted(found)) or 'nothing'}; this optimizer needs "
                         f"{', '.join(['step', *sorted(needed)])}")
    if not float(steps) >= 0 or float(steps) != int(steps):
        raise ValueError(f"step of '{name}' is {steps} in the state; it must be a whole number, not negative")
    return {"step": int(steps),
            **{key: _piece(f"{key} of '{name}'", value, pieces[key], shape, ours) for key, value in renamed.items()}}


def checked(state_dict: Dict[str, Any], groups: List[Dict[str, Any]], recipes: Sequence[_core.Recipe],
            settings: Dict[str, Any]) -> Tuple[List[Dict[str, Any]], State, int]:
    """New entries of the groups, states by parameter, and the number of steps; an error if anything does not fit."""
    for key in ("state", "param_groups"):
        if key not in state_dict:
            raise ValueError(f"this is not the state of an optimizer: it lacks '{key}'; it has: "
                             f"{', '.join(map(str, state_dict)) or 'nothing'}")
    saved_groups, own = state_dict["param_groups"], state_dict.get("cautious")
    if len(saved_groups) != len(groups):
        raise ValueError(f"the state has {len(saved_groups)} groups, this optimizer {len(groups)}")
    for name, value in (own["settings"] if own else {}).items():
        if name != "nonfinite" and settings[name] != value:
            raise ValueError(f"the state was made with {name}={value!r}, this optimizer has {settings[name]!r}")
    entries, states, steps = [], {}, own["steps"] if own else 0
    taken = set()
    for at, (saved, group) in enumerate(zip(saved_groups, groups)):
        where = f"group {at}: "
        entries.append(_entries(saved, group, where))
        recipe = recipe_of({**group, **entries[at]}, where)
        for number, name, tensor in zip(saved["params"], group["param_names"], group["params"]):
            found = state_dict["state"].get(number)
            taken.add(number)
            if found:
                state = _state(name, found, expected(recipe, tensor.dtype, settings), tensor.shape, own is not None)
                if state:
                    states[tensor] = state
                    steps = max(steps, state["step"]) if not own else steps
    left = sorted(str(key) for key in state_dict["state"] if key not in taken)
    if left:
        raise ValueError(f"the state has entries for parameters that no group has: {', '.join(left[:5])}")
    return entries, states, steps
