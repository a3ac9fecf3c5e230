"""Both optimizers of the package against the golden vectors: the bits of docs/spec.md, through every layer of Python."""
import unittest

import numpy as np
import torch

import cautious
import cautious.torch
from golden_cases import CASES

TORCH = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16}


def tensor(array, dtype):
    """The same bits as a tensor with memory of its own."""
    if dtype == "bf16":
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(array.copy())


def bits(value):
    """A tensor as the NumPy array that golden_cases compares: bf16 as uint16."""
    value = value.detach()
    return value.view(torch.int16).numpy().view(np.uint16) if value.dtype == torch.bfloat16 else value.numpy()


class Golden(unittest.TestCase):
    def test_arrays(self):
        for case in CASES:
            with self.subTest(case.name):
                group = cautious.Group("all", case.recipe, case.data.get("lr_multiplier", 1.0),
                                       case.data.get("decay_switch") != "off")
                optimizer = cautious.Optimizer(cautious.Routing([group], [cautious.Route("all")]), **case.options)
                x = case.x.copy()
                g = np.zeros_like(next(g for g in case.g if g is not None))
                optimizer.add("x", x, g, dtype=case.dtype, x0=case.anchor)
                for step, lr in enumerate(case.lr):
                    if case.g[step] is None:
                        optimizer.gradient("x", None)
                    else:
                        g[:] = case.g[step]
                        optimizer.gradient("x", g)
                    report = optimizer.step(lr, lr_max=case.lr_max, decay_factor=case.factors[step])
                    case.check_step(self, step, x, report)
                case.check_state(self, optimizer.state("x"))
        self.assertGreater(len(CASES), 500)

    def test_torch(self):
        """All but what torch has elsewhere: gradients of another type than the parameter, and clipping of the whole
        gradient."""
        ran = 0
        for case in CASES:
            if case.gradient != case.dtype or "grad_clip" in case.options:
                continue
            ran += 1
            with self.subTest(case.name):
                x = torch.nn.Parameter(tensor(case.x if case.anchor is None else case.anchor, case.dtype))
                off = {"decay": "none"} if case.data.get("decay_switch") == "off" else {}
                factor = case.data.get("lr_multiplier", 1.0)
                optimizer = cautious.torch.Optimizer([{"params": [("x", x)], "recipe": case.recipe, **off}],
                                                     lr_max=case.lr_max * factor, **case.options)
                x.data.copy_(tensor(case.x, case.dtype))  # the anchor was the value when it was added
                (group,) = optimizer.param_groups
                for step, lr in enumerate(case.lr):
                    x.grad = None if case.g[step] is None else tensor(case.g[step], case.dtype)
                    group["lr"] = lr * factor
                    group["decay_factor"] = case.factors[step]
                    optimizer.step()
                    case.check_step(self, step, bits(x), optimizer.report())
                case.check_state(self, {name: bits(value) for name, value in optimizer.state[x].items() if name != "step"})
        self.assertGreater(ran, 450)


if __name__ == "__main__":
    unittest.main()
