"""cautious.torch beside others: torch's own AdamW and SGD where they mean the same, and cautious.replay, bit by bit, for
every recipe under every decay."""
import itertools
import unittest

import numpy as np
import torch

import cautious
import cautious.torch

SHAPES = [(7, 5), (11,), (3, 2, 4), (), (0, 3)]


def parameters(dtype=torch.float64, shapes=SHAPES):
    made = torch.Generator().manual_seed(0)
    return [torch.nn.Parameter(torch.randn(shape, generator=made, dtype=torch.float64).to(dtype)) for shape in shapes]


def train(optimizer, tensors, steps, first=0):
    for t in range(first, first + steps):
        made = torch.Generator().manual_seed(100 + t)
        for p in tensors:
            p.grad = torch.randn(p.shape, generator=made, dtype=torch.float64).to(p.dtype)
        optimizer.step()


def furthest(a, b):
    return max(float((x - y).detach().abs().max()) for x, y in zip(a, b) if x.numel())


class Torch(unittest.TestCase):
    def test_adamw(self):
        for options in ({}, {"betas": (0.8, 0.95), "eps": 1e-3}, {"weight_decay": 0.0}, {"weight_decay": 0.5, "lr": 0.1}):
            a, b = parameters(), parameters()
            train(torch.optim.AdamW(a, **{"lr": 1e-2, **options}), a, 100)
            train(cautious.torch.AdamW(b, **{"lr": 1e-2, **options}, decay="decoupled"), b, 100)
            self.assertLess(furthest(a, b), 1e-12)

    def test_sgd_with_momentum(self):
        a, b = parameters(), parameters()
        theirs = torch.optim.SGD(a, lr=0.05, momentum=0.9, dampening=0.9)
        for p in a:
            theirs.state[p]["momentum_buffer"] = torch.zeros_like(p)  # else the first gradient enters whole
        train(theirs, a, 100)
        train(cautious.torch.SGDM(b, lr=0.05, beta=0.9, decay="none"), b, 100)
        self.assertLess(furthest(a, b), 1e-12)

    def test_states_of_torch_continue(self):
        for theirs, ours in ((lambda p: torch.optim.AdamW(p, lr=0.02, betas=(0.8, 0.99), weight_decay=0.3),
                              lambda p: cautious.torch.AdamW(p, decay="decoupled")),
                             (lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.8, dampening=0.8),
                              lambda p: cautious.torch.SGDM(p, decay="none"))):
            a = parameters()
            first = theirs(a)
            train(first, a, 10)
            b = [torch.nn.Parameter(p.detach().clone()) for p in a]
            second = ours(b)
            second.load_state_dict(first.state_dict())
            train(first, a, 10, first=10)
            train(second, b, 10, first=10)
            self.assertLess(furthest(a, b), 1e-13)
            self.assertEqual(second.param_groups[0]["lr"], 0.02)

    def test_states_of_torch_without_counterpart(self):
        a = parameters()
        for theirs, ours, message in ((lambda: torch.optim.SGD(a, lr=0.1, momentum=0.9), cautious.torch.SGDM, "an average"),
                                      (lambda: torch.optim.SGD(a, lr=0.1, momentum=0.9, nesterov=True), cautious.torch.SGDM,
                                       "nesterov"),
                                      (lambda: torch.optim.AdamW(a, amsgrad=True), cautious.torch.AdamW, "amsgrad"),
                                      (lambda: torch.optim.RMSprop(a), cautious.torch.AdamW, "has square_avg")):
            saved = theirs()
            train(saved, a, 1)
            with self.assertRaises(ValueError) as caught:
                ours(parameters()).load_state_dict(saved.state_dict())
            self.assertIn(message, str(caught.exception))


def bits(tensor):
    tensor = tensor.detach()
    return tensor.view(torch.int16).numpy().view(np.uint16) if tensor.dtype == torch.bfloat16 else tensor.numpy()


class Core(unittest.TestCase):
    def compare(self, line, dtype, shape=(6, 9), steps=5, **options):
        x = torch.nn.Parameter(torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(dtype))
        g = torch.randn((steps, *shape), generator=torch.Generator().manual_seed(2), dtype=torch.float64).to(dtype)
        expected = cautious.replay(bits(x).copy(), bits(g), line, lr=0.02, dtype="bf16" if dtype == torch.bfloat16 else None,
                                   **options)
        # Beside it, in another group, something else: nothing depends on that.
        other = torch.nn.Parameter(torch.ones(3))
        optimizer = cautious.torch.Optimizer([{"params": [("other", other)], "recipe": "lion", "lr": 0.5},
                                              {"params": [("x", x)]}], line,
                                             0.02, **options)
        for t in range(steps):
            x.grad, other.grad = g[t].clone(), torch.ones(3)
            optimizer.step()
        self.assertEqual(bits(x).tobytes(), expected.x.tobytes())
        state = optimizer.state[x]
        self.assertEqual(state.pop("step"), steps)
        state.pop("x0", None)
        self.assertEqual(set(state), set(expected.state))
        for name, piece in state.items():
            self.assertEqual(bits(piece).tobytes(), expected.state[name].tobytes(), name)
        self.assertEqual(optimizer.report().tensors["x"].ratio, expected.ratio[-1])

    def test_every_recipe_and_decay(self):
        for recipe, decay in itertools.product(cautious.recipe_names(), cautious.decay_names()):
            for dtype in (torch.float32, torch.float64, torch.bfloat16):
                with self.subTest(recipe=recipe, decay=decay, dtype=dtype):
                    self.compare(f"{recipe} decay={decay} weight_decay=0.3", dtype)

    def test_roundings_moments_and_clipping(self):
        for rounding, moments in itertools.product(("nearest", "stochastic", "split"), ("f32", "bf16")):
            self.compare("adamw decay=cautious", torch.bfloat16, rounding=rounding, moments=moments, seed=7)
        self.compare("adamw decay=cautious", torch.float32, update_rms_clip=0.1)

    def test_rules_with_shapes(self):
        for k in ("l1", "l2", "lp", "huber", "relativistic", "threshold", "topk", "nuclear"):
            self.compare(f"lion-k k={k} decay=cautious", torch.float32)
        for fields in ("scale=rms", "nesterov=on", "schedule=exact", "blocks=3", "schedule=custom coefficients=3,-3.25,1.25"):
            self.compare(f"muon decay=cautious {fields}", torch.float32)


if __name__ == "__main__":
    unittest.main()
