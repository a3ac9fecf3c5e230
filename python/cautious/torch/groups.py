"""Parameters and groups as users give them: names, what a parameter must be, and a group's recipe from its entries."""
from __future__ import annotations

import difflib
from typing import Any, Dict, FrozenSet, Iterable, List, NamedTuple, Tuple

import torch

from .. import _core
from ..recipe import Field, fields_of, made, settings_of

ELEMENTS = {torch.float32: "f32", torch.float64: "f64", torch.bfloat16: "bf16"}
RATES = {"lr": 1e-3, "lr_max": 0.0, "decay_factor": 1.0}  # of a group besides its recipe; those of StepInput
# What torch and its schedulers put beside them.
FOREIGN = {"params", "param_names", "name", "highest_lr", "initial_lr", "max_lr", "min_lr", "swa_lr", "base_momentum",
           "max_momentum", "differentiable", "foreach", "maximize", "capturable", "fused"}


def named(parameters: Iterable[Any], first: int) -> Tuple[List[str], List[torch.Tensor]]:
    """Names and tensors. Those given without a name are called by their number, from `first`."""
    names, tensors = [], []
    for at, item in enumerate(parameters):
        name, tensor = item if isinstance(item, tuple) and len(item) == 2 else (str(first + at), item)
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"parameter '{name}' is a {type(tensor).__name__}; give tensors, or (name, tensor) as "
                            "model.named_parameters() does")
        names.append(name)
        tensors.append(tensor)
    return names, tensors


def check_parameter(name: str, tensor: torch.Tensor) -> None:
    if tensor.is_complex() or tensor.dtype not in ELEMENTS:
        raise TypeError(f"parameter '{name}' is {tensor.dtype}; valid: float32, float64, bfloat16")
    if tensor.layout != torch.strided:
        raise TypeError(f"parameter '{name}' is {tensor.layout}; sparse tensors are not supported")
    if not (tensor.is_leaf or tensor.retains_grad):
        raise ValueError(f"parameter '{name}' is not a leaf: it was computed from others, which are the ones to optimize")
    if not tensor.is_contiguous():
        raise ValueError(f"parameter '{name}' does not lie row after row (shape {list(tensor.shape)}, strides "
                         f"{list(tensor.stride())}); give .contiguous() of it")


def check_gradient(name: str, tensor: torch.Tensor) -> None:
    g = tensor.grad
    if g is None:
        return
    if g.layout != torch.strided:
        raise TypeError(f"the gradient of '{name}' is {g.layout}; sparse gradients are not supported (nn.Embedding: "
                        "sparse=False)")
    if g.dtype != tensor.dtype:
        raise TypeError(f"the gradient of '{name}' is {g.dtype}, the parameter {tensor.dtype}")
    if g.shape != tensor.shape or g.device != tensor.device:
        raise ValueError(f"the gradient of '{name}' is {list(g.shape)} on {g.device}, the parameter {list(tensor.shape)} on "
                         f"{tensor.device}")


class Fields(NamedTuple):
    """The entries that a group has for its recipe: beta1 and beta2 are one entry, betas, as torch's schedulers know them."""
    keys: Tuple[str, ...]
    names: Tuple[str, ...]
    numbers: FrozenSet[str]  # those that may change without new state


_known: Dict[Tuple[str, str], Fields] = {}


def entries_of(fields: Iterable[Field]) -> Dict[str, Any]:
    values = {field.name: field.value for field in fields}
    if "beta1" in values:
        values = {"betas": (values.pop("beta1"), values.pop("beta2")), **values}
    return values


def fields_for(rule: str, decay: str) -> Fields:
    if (rule, decay) not in _known:
        fields = fields_of(made(rule, decay=decay))
        entries = entries_of(fields)
        _known[rule, decay] = Fields(tuple(entries), tuple(field.name for field in fields),
                                     frozenset(name for name, value in entries.items() if isinstance(value, (float, tuple))))
    return _known[rule, decay]


def expanded(recipe: str, given: Dict[str, Any], where: str) -> Dict[str, Any]:
    """A group's entries: rule, fields of the recipe with those given, rates. Refuses what is no field of it."""
    fields = {name: value for name, value in given.items() if name not in RATES and name not in FOREIGN}
    betas = fields.pop("betas", None)
    if betas is not None:
        try:
            fields["beta1"], fields["beta2"] = betas
        except (TypeError, ValueError):
            raise ValueError(f"{where}betas is {betas!r}; it must be two numbers") from None
    try:
        found = made(recipe, **fields)
    except ValueError as error:
        known = set(RATES) | set(entries_of(fields_of(made(recipe))))
        for name in fields:
            near = difflib.get_close_matches(name, RATES)
            if near and name not in known:
                raise ValueError(f"{where}unknown keyword '{name}'; did you mean '{near[0]}'?") from None
        raise ValueError(f"{where}{error}") from None
    entries = {"rule": _core.rule_of(found), **entries_of(fields_of(found))}
    return {**{name: given.get(name, default) for name, default in RATES.items()}, **entries}


def group_entries(defaults: Dict[str, Any], group: Dict[str, Any], where: str) -> Dict[str, Any]:
    """Of a new group: those of its own recipe or of the optimizer's, and what it says itself."""
    own = {name: value for name, value in group.items() if name not in FOREIGN}
    recipe = own.pop("recipe", None)
    if recipe is None:
        recipe = defaults["rule"]
        keys = fields_for(recipe, own.get("decay", defaults["decay"])).keys
        own = {**{name: defaults[name] for name in keys if name in defaults}, **own}
    return expanded(recipe, {**{name: defaults[name] for name in RATES}, **own}, where)


def values_of(group: Dict[str, Any]) -> Tuple[Any, ...]:
    """What a group's recipe depends on; equal values, equal recipes."""
    rule, decay = group["rule"], group["decay"]
    return (rule, decay, *map(group.get, (_known.get((rule, decay)) or fields_for(rule, decay)).keys))


def only_numbers(values: Tuple[Any, ...], before: Tuple[Any, ...]) -> bool:
    """Whether these differ in numbers alone: then tensors keep what the recipe needs of them."""
    if values[:2] != before[:2]:
        return False
    keys, _, numbers = fields_for(values[0], values[1])
    return all(a == b or key in numbers for key, a, b in zip(keys, values[2:], before[2:]))


def recipe_of(group: Dict[str, Any], where: str) -> _core.Recipe:
    rule, decay = group["rule"], group["decay"]
    try:
        names = fields_for(rule, decay).names
        entries = dict(group)
        if "betas" in entries:
            entries["beta1"], entries["beta2"] = entries["betas"]
        return _core.recipe(rule, settings_of((name, entries[name]) for name in names if name in entries))
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}{error}") from None


def rates_of(group: Dict[str, Any], where: str) -> Tuple[float, float, float]:
    """lr, lr_max and decay_factor. lr_max is the largest lr so far unless given."""
    lr, lr_max, factor = float(group["lr"]), float(group["lr_max"]), float(group["decay_factor"])
    for name, value in (("lr", lr), ("lr_max", lr_max), ("decay_factor", factor)):
        if not 0 <= value < float("inf"):
            raise ValueError(f"{where}{name} is {value}; it must be finite and not negative")
    highest = group["highest_lr"] = max(group.get("highest_lr", 0.0), lr)
    return lr, lr_max if lr_max > 0 else highest, factor
