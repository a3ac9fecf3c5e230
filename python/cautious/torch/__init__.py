"""Optimizers for PyTorch's parameters. Change one import:

    from torch.optim import AdamW            ->    from cautious.torch import AdamW

Parameters on the CPU are stepped in place by the C++ library, those on other devices by cautious.reference, the same formulas
in PyTorch's operations.

>>> import torch, cautious.torch
>>> _ = torch.manual_seed(0)
>>> model = torch.nn.Linear(4, 2)
>>> optimizer = cautious.torch.AdamW(model.named_parameters(), lr=0.01, weight_decay=0.1)
>>> for _ in range(20):
...     optimizer.zero_grad()
...     model(torch.ones(3, 4)).square().sum().backward()
...     _ = optimizer.step()
>>> report = optimizer.report()
>>> sorted(report.tensors), report.step, 0 <= report.total.ratio <= 1
(['bias', 'weight'], 20, True)
"""
from .optimizer import Optimizer
from .recipes import SGDM, AdamW, Lion, LionK, Muon

__all__ = ["AdamW", "Lion", "LionK", "Muon", "Optimizer", "SGDM"]
