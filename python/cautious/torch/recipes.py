"""Named optimizers: the signatures users know, each a recipe."""
from __future__ import annotations

from typing import Any, Iterable, Optional, Tuple

from .. import _core
from ..recipe import made
from .groups import named
from .optimizer import SETTINGS, Optimizer


class AdamW(Optimizer):
    """torch.optim.AdamW's arguments, and `decay`: "decoupled" is AdamW itself, "cautious" the default,
    `cautious.decay_names()` all.

    Further keywords: those of the recipe (`coupling`, `mask`, ...) and of Optimizer (`rounding`, `nonfinite`, ...).
    """

    def __init__(self, params: Iterable[Any], lr: float = 1e-3, betas: Tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.01, decay: str = "cautious", **more: Any):
        super().__init__(params, "adamw", lr, betas=betas, eps=eps, weight_decay=weight_decay, decay=decay, **more)


class Lion(Optimizer):
    """Lion: the sign of an interpolated momentum. Its lr is the step of every coordinate: a third to a tenth of AdamW's."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-4, betas: Tuple[float, float] = (0.9, 0.99),
                 weight_decay: float = 0.1, decay: str = "cautious", **more: Any):
        super().__init__(params, "lion", lr, betas=betas, weight_decay=weight_decay, decay=decay, **more)


class LionK(Optimizer):
    """Lion-K: the subgradient of a convex function k of the momentum; "l1" is Lion, `fields("lion-k")` says what else."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-4, k: str = "l1", betas: Tuple[float, float] = (0.9, 0.99),
                 weight_decay: float = 0.1, decay: str = "cautious", **more: Any):
        super().__init__(params, "lion-k", lr, k=k, betas=betas, weight_decay=weight_decay, decay=decay, **more)


class SGDM(Optimizer):
    """SGD with averaged momentum, m = beta m + (1 - beta) g: torch.optim.SGD(momentum=beta, dampening=beta), whose
    weight_decay is not decoupled. With dampening=0 its lr is (1 - beta) times the one here."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-2, beta: float = 0.9, weight_decay: float = 0.0,
                 decay: str = "cautious", **more: Any):
        super().__init__(params, "sgdm", lr, beta=beta, weight_decay=weight_decay, decay=decay, **more)


class Muon(Optimizer):
    """Muon for matrices, AdamW for the rest; vectors and scalars do not decay.

    Takes names, model.named_parameters(). Embeddings and outputs, which are matrices for AdamW, are found by a side above
    `max_side` or by name: `rest_names` are patterns ("*" is any text). `rest` is the recipe of the rest, AdamW with the same
    weight decay unless given, and `rest_lr` its learning rate. Further keywords are Muon's: nesterov, schedule, scale, ...

    >>> import torch, cautious.torch
    >>> model = torch.nn.Sequential(torch.nn.Embedding(100, 8), torch.nn.Linear(8, 8))
    >>> optimizer = cautious.torch.Muon(model.named_parameters(), lr=0.02, rest_names=["0.*"], scale="jordan", nesterov=True)
    >>> [(group["name"], group["param_names"]) for group in optimizer.param_groups]
    [('matrices', ['1.weight']), ('rest', ['0.weight']), ('vectors', ['1.bias'])]
    """

    def __init__(self, params: Iterable[Any], lr: float = 0.02, beta: float = 0.95, weight_decay: float = 0.1,
                 decay: str = "cautious", *, rest: Optional[str] = None, rest_lr: float = 1e-3,
                 rest_names: Iterable[str] = (), max_side: Optional[int] = None, **more: Any):
        settings = {name: more.pop(name) for name in (*SETTINGS, "generic") if name in more}
        matrices = str(made("muon", beta=beta, weight_decay=weight_decay, decay=decay, **more))
        others = rest or str(made("adamw", weight_decay=weight_decay, decay=decay))
        groups = {"matrices": {"recipe": matrices, "lr": lr}, "rest": {"recipe": others, "lr": rest_lr},
                  "vectors": {"recipe": others, "lr": rest_lr, "decay": "none"}}
        routes = [_core.Route("vectors", max_rank=1), *(_core.Route("rest", pattern=pattern) for pattern in rest_names),
                  _core.Route("matrices", **({} if max_side is None else {"max_side": max_side})), _core.Route("rest")]
        routing = _core.Routing([_core.Group(name, group["recipe"]) for name, group in groups.items()], routes)
        for name, group in groups.items():
            group.update(name=name, params=[])
        for name, tensor in zip(*named(params, 0)):
            groups[routing.group_of(name, list(tensor.shape))]["params"].append((name, tensor))
        super().__init__([group for group in groups.values() if group["params"]], matrices, lr, **settings)
