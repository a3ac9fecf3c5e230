"""Optimizers with cautious weight decay: decay acts only where it does not fight the update.

    x <- x - lr * (u + wd * [u * x >= 0] * x)

This package works on arrays in CPU memory and does not import PyTorch; cautious.torch is for PyTorch's parameters. Arithmetic
is that of the C++ library, bit by bit (docs/spec.md).

>>> import numpy as np, cautious
>>> x, g = np.array([4.0, 3, -2, -1]), np.zeros(4)
>>> optimizer = cautious.Optimizer("adamw decay=cautious weight_decay=0.1")
>>> optimizer.add("x", x, g)
>>> for t in range(300):
...     g[:] = x - 1                      # gradient of |x - 1|^2 / 2
...     report = optimizer.step(lr=0.05)
>>> x.round(2)
array([1., 1., 1., 1.])
>>> report.step, report.total.count
(300, 4)
"""
from ._core import Group, Route, Routing, __version__, decay_names, matrices_and_rest, no_decay_on_vectors, recipe_names
from .arrays import polar
from .compare import compare
from .optimizer import Optimizer
from .recipe import Field, fields
from .replay import Replay, replay
from .report import Report, Tally

__all__ = ["Field", "Group", "Optimizer", "Replay", "Report", "Route", "Routing", "Tally", "__version__", "compare",
           "decay_names", "fields", "matrices_and_rest", "no_decay_on_vectors", "polar", "recipe_names", "replay"]
