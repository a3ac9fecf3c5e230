"""A stand-in for timm.optim (timm 1.0.26): the names that examples/python/timm_factory.py uses."""
from ._optim_factory import OptimInfo, create_optimizer_v2

__all__ = ["OptimInfo", "create_optimizer_v2"]
