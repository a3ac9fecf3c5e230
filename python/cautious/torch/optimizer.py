"""Every recipe as a torch.optim.Optimizer. The C++ library keeps the state of CPU parameters and steps them in one call;
parameters on other devices, or all with generic=True, are stepped by cautious.reference. This file holds the class; groups.py
knows groups, saved.py what is kept."""
from __future__ import annotations

from collections import defaultdict
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import torch

from .. import _core
from ..recipe import settings_of
from ..report import Report, Tally, tally
from . import elsewhere, saved
from .groups import (ELEMENTS, FOREIGN, check_gradient, check_parameter, expanded, group_entries, named, only_numbers, rates_of,
                     recipe_of, values_of)

_core.use_torch(torch)

State = Dict[torch.Tensor, Dict[str, Any]]
SETTINGS = ("moments", "rounding", "nonfinite", "update_rms_clip", "seed")


class Entry(NamedTuple):
    """A parameter as it was when the core was made."""
    name: str
    tensor: torch.Tensor
    group: int
    slot: int  # in the core; -1: stepped elsewhere
    shape: torch.Size
    dtype: torch.dtype


class Optimizer(torch.optim.Optimizer):
    """params: tensors, (name, tensor) pairs as of model.named_parameters(), or groups as dicts, whose entries override the
    keywords and which may have a `recipe` of their own. recipe: "adamw decay=cautious beta2=0.95"; its fields are keywords
    too, and entries of `param_groups`, where changes between steps count. beta1 and beta2 are `betas` there.

    lr_max: peak of the schedule for `coupling` corrected and independent; 0 is the largest lr so far. decay_factor: of a
    weight-decay schedule. moments ("f32", "bf16"), rounding of bf16 parameters ("nearest", "stochastic", "split"), nonfinite
    ("propagate", "skip", "error"), update_rms_clip, seed: docs/spec.md. generic: no C++ for any tensor.

    >>> import torch, cautious.torch
    >>> w = torch.nn.Parameter(torch.ones(3))
    >>> optimizer = cautious.torch.Optimizer([w], "sgd decay=cautious", lr=0.1, weight_decay=1.0)
    >>> w.grad = torch.tensor([1.0, 0.0, -1.0])
    >>> optimizer.step()
    >>> w.data, optimizer.report().total.ratio_strict == 1 / 3
    (tensor([0.8000, 0.9000, 1.1000]), True)
    """

    # GradScaler leaves found_inf and grad_scale to step(). That of 1.x would give step() another argument; it unscales itself.
    _step_supports_amp_scaling = int(torch.__version__.split(".")[0]) >= 2

    def __init__(self, params: Iterable[Any], recipe: str = "adamw decay=cautious", lr: float = 1e-3, *, moments: str = "f32",
                 rounding: str = "nearest", nonfinite: str = "propagate", update_rms_clip: float = 0.0, seed: int = 0,
                 generic: bool = False, **fields: Any):
        self._settings = dict(zip(SETTINGS, (moments, rounding, nonfinite, update_rms_clip, seed)))
        _core.Core(_core.everything("sgd"), settings_of(self._settings.items()))  # refuses what is out of range
        self._generic = bool(generic)
        self._forget()
        unknown = sorted(set(fields) & FOREIGN)
        if unknown:
            raise ValueError(f"unknown keyword '{unknown[0]}'")
        if isinstance(params, torch.Tensor):
            raise TypeError("params is a tensor; give a list of tensors, model.named_parameters() or groups")
        params = list(params)
        if not params:
            raise ValueError("the list of parameters is empty")
        groups = params if isinstance(params[0], dict) else [{"params": params}]
        super().__init__(groups, expanded(recipe, {"lr": lr, **fields}, ""))
        self._build({})

    def _forget(self) -> None:
        self._core: Optional[_core.Core] = None
        self._threads = 0
        self._steps = 0
        self._entries: List[Entry] = []
        self._elsewhere: Dict[torch.Tensor, Dict[str, Any]] = {}  # state of those not in the core
        self._tallies: Dict[str, Tally] = {}  # and what they did in the last step
        self._skipped = False
        self._values: List[Tuple[Any, ...]] = []  # of each group, when its recipe was made
        self._recipes: List[_core.Recipe] = []
        self._rates: List[Tuple[float, float, float]] = []
        self._strengths: List[float] = []  # lr times weight decay

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """A group with entries of its own; those it lacks are the optimizer's. Its state and anchors begin now."""
        at, first = len(self.param_groups), sum(len(group["params"]) for group in self.param_groups)
        where, given = f"group {at}: ", param_group.get("params")
        if given is None or isinstance(given, set):
            raise TypeError(f"{where}params must be a list; " + ("there is none" if given is None else "a set has no order"))
        names, tensors = named([given] if isinstance(given, torch.Tensor) else given, first)
        names = list(param_group.get("param_names", names))
        known = {name: tensor for group in self.param_groups for name, tensor in zip(group["param_names"], group["params"])}
        for name, tensor in zip(names, tensors):
            check_parameter(name, tensor)
            if name in known:
                raise ValueError(f"two parameters are named '{name}'")
            same = [other for other, each in known.items() if each is tensor]
            if same:
                raise ValueError(f"parameter '{name}' is the same tensor as '{same[0]}'; give it once")
            known[name] = tensor
        foreign = {name: value for name, value in param_group.items() if name in FOREIGN}
        entries = group_entries(self.defaults, param_group, where)
        super().add_param_group({**foreign, **entries, "params": tensors, "param_names": names, "highest_lr": 0.0})
        for name in set(self.param_groups[-1]) - set(entries) - FOREIGN - {"betas"}:  # torch fills in all defaults
            del self.param_groups[-1][name]  # betas stay: a scheduler that moves them asks every group
        if self._core is not None:
            try:
                self._build(self._states())
            except Exception:
                self.param_groups.pop()
                raise

    # -- a step

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """One step of every parameter that has a gradient. A closure is called first; its value is returned."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            if not self._overflowed():
                self._step()
        return loss

    def _overflowed(self) -> bool:
        """What GradScaler asks of a fused optimizer: skip if a gradient overflowed, else undo the scale."""
        found, scale = getattr(self, "found_inf", None), getattr(self, "grad_scale", None)
        if found is not None and float(found) != 0:
            self._skipped = True
            return True
        if scale is not None:
            for entry in self._entries:
                if entry.tensor.grad is not None:
                    entry.tensor.grad.div_(float(scale))
        return False

    def _step(self) -> None:
        if self._threads != torch.get_num_threads() or len(self._recipes) != len(self.param_groups):
            self._build(self._states())
        self._refresh()
        self._skipped, policy = False, self._settings["nonfinite"]
        if self._elsewhere and policy != "propagate" and elsewhere.nonfinite(self._entries, policy):
            self._skipped = True
            return
        lists = [group["params"] for group in self.param_groups]
        looked = False
        while (at := self._core.step_tensors(lists, self._factors(amounts := self._amounts()))) != _core.DONE:
            if at == _core.CHANGED:
                self._build(self._states())
                lists = [group["params"] for group in self.param_groups]
            elif looked:
                raise RuntimeError(f"parameter '{self._entries[at].name}' changes while it is stepped")
            else:
                self._look()
                looked = True
        if policy != "propagate":
            self._skipped = self._core.report()[1]
        if self._skipped:
            return
        self._steps += 1
        if self._elsewhere:
            self._tallies = elsewhere.step(self._entries, self._elsewhere, self._recipes, self._rates, self._settings, amounts)

    def _amounts(self) -> Sequence[Tuple[float, float]]:
        """Of every entry, for a control (compared.py): the density of its random mask, and a factor on its weight decay."""
        return ()

    def _factors(self, amounts: Sequence[Tuple[float, float]]) -> List[float]:
        """Those of the entries in the core, which has their densities now."""
        factors = []
        for entry, (density, factor) in zip(self._entries, amounts):
            if entry.slot >= 0:
                factors.append(factor)
                if self.param_groups[entry.group]["decay"] == "random":
                    self._core.set_density(entry.slot, density)
        return factors

    def _refresh(self) -> None:
        """Recipes and rates of the groups as they are now."""
        for at, group in enumerate(self.param_groups):
            values, rates = values_of(group), rates_of(group, f"group {at}: ")
            if values == self._values[at] and rates == self._rates[at]:
                continue
            if values != self._values[at]:
                recipe = recipe_of(group, f"group {at}: ")
                if not only_numbers(values, self._values[at]):
                    self._build(self._states())
                    return
                self._recipes[at], self._values[at] = recipe, values
            self._strengths[at] = self._core.set_rates(at, self._recipes[at], *rates)
            self._rates[at] = rates

    def _look(self) -> None:
        """At every parameter and gradient, because one of them is not what it was."""
        for at, entry in enumerate(self._entries):
            name, tensor = entry.name, entry.tensor
            check_parameter(name, tensor)
            check_gradient(name, tensor)
            if tensor.shape != entry.shape or tensor.dtype != entry.dtype:
                raise ValueError(f"parameter '{name}' is {tensor.dtype} {list(tensor.shape)}; it was added as {entry.dtype} "
                                 f"{list(entry.shape)}")
            if (entry.slot >= 0) != self._in_core(tensor):
                return self._build(self._states())
            if entry.slot >= 0:
                self._core.trust(at, tensor.data_ptr())

    def _in_core(self, tensor: torch.Tensor) -> bool:
        return tensor.device.type == "cpu" and not self._generic

    def _build(self, states: State) -> None:
        """A new core of the groups as they are, with these states; the anchor of a parameter without state is its value now."""
        recipes, rates, groups = [], [], []
        for at, group in enumerate(self.param_groups):
            where = f"group {at}: "
            if self._values and at < len(self._values) and group["rule"] != self._values[at][0]:
                raise ValueError(f"{where}the rule was '{self._values[at][0]}' and cannot become '{group['rule']}'")
            params, names = len(group["params"]), len(group["param_names"])
            if params != names:
                raise ValueError(f"{where}{params} params, but {names} param_names; new parameters come by add_param_group()")
            recipes.append(recipe_of(group, where))
            rates.append(rates_of(group, where))
            groups.append(_core.Group(str(at), str(recipes[at])))
        threads = torch.get_num_threads()
        core = _core.Core(_core.Routing(groups, []), settings_of([*self._settings.items(), ("threads", threads)]))
        entries, others = [], {}
        for at, group in enumerate(self.param_groups):
            for name, tensor in zip(group["param_names"], group["params"]):
                slot, element = -1, ELEMENTS[tensor.dtype]
                if self._in_core(tensor):
                    slot = core.add(name, list(tensor.shape), element, element, tensor.data_ptr(), 0, str(at))
                else:
                    others[tensor] = {**elsewhere.begin(tensor, recipes[at]),
                                      **saved.moved(states.get(tensor, {}), tensor.device)}
                entries.append(Entry(name, tensor, at, slot, tensor.shape, tensor.dtype))
        for at, entry in enumerate(entries):
            core.watch(entry.tensor, entry.group, entry.slot)
            if entry.slot >= 0:
                core.trust(at, entry.tensor.data_ptr())
                if entry.tensor in states:
                    saved.put(core, entry.slot, entry.shape, states[entry.tensor])
        self._strengths = [core.set_rates(at, recipe, *rates[at]) for at, recipe in enumerate(recipes)]
        self._core, self._threads, self._entries, self._elsewhere = core, threads, entries, others
        self._recipes, self._rates, self._values = recipes, rates, [values_of(group) for group in self.param_groups]

    # -- what happened, and what is kept

    def report(self) -> Report:
        """Of the last step, per parameter by name and in total."""
        _, _, _, numbers = self._core.report()
        stepped = range(len(numbers) - 1)
        rows = [numbers[entry.slot] if entry.slot in stepped else self._tallies.get(entry.name, Tally())
                for entry in self._entries]
        total = tally([sum(column) for column in zip(*rows)]) if self._elsewhere else tally(numbers[-1])
        return Report(self._steps, self._skipped, 1.0, [entry.name for entry in self._entries], rows, total)

    def _states(self) -> State:
        found: State = {tensor: dict(state) for tensor, state in self._elsewhere.items() if state}
        for entry in self._entries:
            if entry.slot >= 0:
                pieces = saved.views(self._core, entry.slot, entry.shape)
                steps = self._core.steps_of(entry.slot)
                if steps > 0 or "x0" in pieces:
                    found[entry.tensor] = {"step": steps, **pieces}
        return found

    @property
    def state(self) -> State:  # type: ignore[override]
        """Per parameter: "step", "m", "v", "low", "x0", as the recipe has them. The tensors are the state itself."""
        return defaultdict(dict, self._states())

    @state.setter
    def state(self, states: State) -> None:
        if self._core is not None:
            self._build(dict(states))

    def state_dict(self) -> Dict[str, Any]:
        """As of any torch optimizer, and the settings, under "cautious". Continuing from it is bitwise the same as never having
        stopped."""
        return {**super().state_dict(), "cautious": {"settings": dict(self._settings), "steps": self._steps}}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Continues from state_dict(), or from that of torch.optim.AdamW, Adam, or SGD with dampening = momentum. Changes
        nothing unless groups, names, shapes, types and settings fit."""
        groups, states, steps = saved.checked(state_dict, self.param_groups, self._recipes, self._settings)
        for group, entries in zip(self.param_groups, groups):
            group.update(entries)
        self._build(states)
        self._steps, self._skipped, self._tallies = steps, False, {}

    def __getstate__(self) -> Dict[str, Any]:
        return {"defaults": self.defaults, "param_groups": self.param_groups, "state": self._states(),
                "cautious": (self._settings, self._generic, self._steps)}

    def __setstate__(self, pickled: Dict[str, Any]) -> None:
        self._forget()
        self._settings, self._generic, self._steps = pickled["cautious"]
        super().__setstate__({"defaults": pickled["defaults"], "param_groups": pickled["param_groups"]})
        self._build(pickled["state"])
