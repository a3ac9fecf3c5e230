"""Named optimizers: the signatures users know, each a recipe."""
from __future__ import annotations

from typing import Any, Iterable, Optional, Tuple

from .. import _core
from ..recipe import made
from .groups import named
from .optimizer import Optimizer


class AdamW(Optimizer):
    """torch.optim.AdamW's arguments, and `decay`: "decoupled" is AdamW itself, "cautious" the default, `cautious.decay_names()` all.

    Further keywords: those of the recipe (`coupling`, `mask`, ...) and of Optimizer (`rounding`, `nonfinite`, ...).
    """

    def __init__(self, params: Iterable[Any], lr: float = 1e-3, betas: Tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.01, decay: str = "cautious", **more: Any):
        super().__init__(params, "adamw", lr, betas=betas, eps=eps, weight_decay=weight_decay, decay=decay, **more)


class Lion(Optimizer):
    """Lion: the sign of an interpolated momentum. Its lr is the step of every coordinate: a third to a tenth of AdamW's."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-4, betas: Tuple[float, float] = (0.9, 0.99), weight_decay: float = 0.1,
                 decay: str = "cautious", **more: Any):
        super().__init__(params, "lion", lr, betas=betas, weight_decay=weight_decay, decay=decay, **more)


class LionK(Optimizer):
    """Lion-K: the subgradient of a convex function k of the momentum ("l1" is Lion; "l2", "lp", "huber", "topk", "nuclear", ...)."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-4, k: str = "l1", betas: Tuple[float, float] = (0.9, 0.99),
                 weight_decay: float = 0.1, decay: str = "cautious", **more: Any):
        super().__init__(params, "lion-k", lr, k=k, betas=betas, weight_decay=weight_decay, decay=decay, **more)


class SGDM(Optimizer):
    """SGD with averaged momentum, m = beta m + (1 - beta) g: torch.optim.SGD(momentum=beta, dampening=beta), whose weight_decay is
    not decoupled. With dampening=0 its lr is (1 - beta) times the one here."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-2, beta: float = 0.9, weight_decay: float = 0.0, decay: str = "cautious",
                 **more: Any):
        super().__init__(params, "sgdm", lr, beta=beta, weight_decay=weight_decay, decay=decay, **more)


class Muon(Optimizer):
    """Muon for matrices, AdamW for the rest; vectors and scalars do not decay.

    Takes names, model.named_parameters(). Embeddings and outputs, which are matrices for AdamW, are found by a side above `max_side` or
    by name: `rest_names` are patterns ("*" is any text). `rest` is the recipe of the rest, AdamW with the same weight decay unless
    given, and `rest_lr` its learning rate. Further keywords are Muon's: nesterov, schedule, scale, steps, ...

    >>> import torch, cautious.torch
    >>> model = torch.nn.Sequential(torch.nn.Embedding(100, 8), torch.nn.Linear(8, 8))
    >>> optimizer = cautious.torch.Muon(model.named_parameters(), lr=0.02, rest_names=["0.*"], scale="jordan", nesterov=True)
    >>> [(group["name"], group["param_names"]) for group in optimizer.param_groups]
    [('matrices', ['1.weight']), ('rest', ['0.weight']), ('vectors', ['1.bias'])]
    """

    def __init__(self, params: Iterable[Any], lr: float = 0.02, beta: float = 0.95, weight_decay: float = 0.1, decay: str = "cautious",
                 *, rest: Optional[str] = None, rest_lr: float = 1e-3, rest_names: Iterable[str] = (),
                 max_side: Optional[int] = None, rounding: str = "nearest", moments: str = "f32", nonfinite: str = "propagate",
                 update_rms_clip: float = 0.0, seed: int = 0, generic: bool = False, **more: Any):
        matrices = str(made("muon", beta=beta, weight_decay=weight_decay, decay=decay, **more))
        others = str(made(rest or "adamw", **({} if rest else {"weight_decay": weight_decay, "decay": decay})))
        usual = _core.matrices_and_rest(matrices, others, **({} if max_side is None else {"max_side": max_side}))
        routes = [_core.Route("vectors", max_rank=1)] + [_core.Route("rest", pattern=pattern) for pattern in rest_names]
        by_name = _core.Routing(usual.groups, [*routes, _core.Route("matrices")])
        names, tensors = named(params, 0)
        groups = {group.name: {"params": [], "recipe": group.recipe, "lr": lr, "name": group.name} for group in usual.groups}
        groups["rest"]["lr"] = groups["vectors"]["lr"] = rest_lr
        groups["vectors"]["decay"] = "none"
        for name, tensor in zip(names, tensors):
            shape = list(tensor.shape)
            at = by_name.group_of(name, shape)
            groups[usual.group_of(name, shape) if at == "matrices" else at]["params"].append((name, tensor))
        super().__init__([group for group in groups.values() if group["params"]], matrices, lr, rounding=rounding, moments=moments,
                         nonfinite=nonfinite, update_rms_clip=update_rms_clip, seed=seed, generic=generic)
