"""The added rule and decay in Python, where nobody wrote a line for them: by name, with their fields, over arrays and for
torch."""
import numpy as np
import torch

import cautious
import cautious.torch

X, G = [2.0, 2, -2, 0.5], [3.0, -3, -3, 3]  # as in check.cc
for floor, expected in ((1.0, [1.25, 2.25, -1.25, 0.25]), (0.25, [1.25, 2.25, -1.25, 0.125])):
    x, g = np.array(X), np.array(G)
    optimizer = cautious.Optimizer(f"signum decay=floored floor={floor} weight_decay=1")
    optimizer.add("x", x, g)
    optimizer.step(0.25)
    w = torch.nn.Parameter(torch.tensor(X))
    w.grad = torch.tensor(G)
    cautious.torch.Optimizer([w], "signum", 0.25, decay="floored", floor=floor, weight_decay=1).step()
    assert x.tolist() == w.tolist() == expected, (floor, x, w)
    print(f"Python, floor {floor:g}: right")
assert "signum" in cautious.recipe_names() and "floored" in cautious.decay_names()
