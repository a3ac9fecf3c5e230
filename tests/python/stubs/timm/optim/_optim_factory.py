"""A stand-in for timm.optim._optim_factory (timm 1.0.26): what a registered class is called with. Parameters with one side do
not decay: they are a group with weight_decay 0, as timm's filter_bias_and_bn makes it, and the keyword is 0 then."""
from dataclasses import dataclass
from typing import Any, Dict, Optional


@dataclass(frozen=True)
class OptimInfo:
    name: str
    opt_class: Any
    description: str = ""
    has_eps: bool = True
    has_momentum: bool = False
    has_betas: bool = False
    num_betas: int = 2
    second_order: bool = False
    defaults: Optional[Dict[str, Any]] = None


class OptimizerRegistry:
    def __init__(self):
        self.known = {}

    def register(self, info):
        self.known[info.name.lower()] = info


default_registry = OptimizerRegistry()


def create_optimizer_v2(model_or_params, opt="sgd", lr=None, weight_decay=0.0, **kwargs):
    info = default_registry.known[opt.lower().split("_")[-1]]
    parameters = list(model_or_params.parameters())
    groups = [{"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
              {"params": [p for p in parameters if p.ndim > 1], "weight_decay": weight_decay}]
    arguments = {"weight_decay": 0.0, **kwargs, **(info.defaults or {})}
    if lr is not None:
        arguments["lr"] = lr
    return info.opt_class(groups, **arguments)
