"""Parameters that are not in CPU memory go to cautious.reference, each by itself. generic=True sends all of them there, so
the way is tested without such a device: with a stand-in that records its calls, and with cautious.reference itself."""
import unittest
from unittest import mock

import torch

import cautious.torch
from cautious import reference

NUMBERS = ("count", "decayed", "active", "nonfinite", "x2", "g2", "u2", "budget")


class StandIn:
    """sgd without decay, and what it was asked."""

    def __init__(self):
        self.calls = []

    def step(self, recipe, x, g, state, *, lr, lr_max=0, decay_factor=1, seed=0, tensor=0, rounding="nearest",
             moments="f32", update_rms_clip=0):
        self.calls.append(dict(recipe=recipe, lr=lr, lr_max=lr_max, decay_factor=decay_factor, seed=seed, tensor=tensor,
                               rounding=rounding, moments=moments, update_rms_clip=update_rms_clip))
        x -= lr * g
        state["step"] = state.get("step", 0) + 1
        state["m"] = g.clone()
        return {name: torch.tensor(float(x.numel())) for name in NUMBERS}


def pair():
    return torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(2, 2))


class Dispatch(unittest.TestCase):
    def setUp(self):
        self.reference = StandIn()
        patch = mock.patch.object(reference, "step", self.reference.step)
        patch.start()
        self.addCleanup(patch.stop)

    def test_arguments_and_report(self):
        a, b = pair()
        optimizer = cautious.torch.AdamW([{"params": [("a", a)]}, {"params": [("b", b)], "lr": 0.5, "decay_factor": 0.25}],
                                         lr=0.25, seed=9,
                                         rounding="split", generic=True)
        a.grad, b.grad = torch.ones(3), torch.ones(2, 2)
        optimizer.step()
        self.assertEqual((float(a[0]), float(b[0, 0])), (0.75, 0.5))
        line = "adam beta1=0.9 beta2=0.999 eps=1e-08 decay=cautious mask=direction coupling=plain weight_decay=0.01"
        first, second = self.reference.calls
        self.assertEqual(first, dict(recipe=line, lr=0.25, lr_max=0.25, decay_factor=1.0, seed=9, tensor=0xaf63dc4c8601ec8c,
                                     rounding="split", moments="f32", update_rms_clip=0.0))
        self.assertEqual((second["lr"], second["decay_factor"], second["tensor"]), (0.5, 0.25, reference.bits.hash_of("b")))
        report = optimizer.report()
        self.assertEqual((report.total.count, report.tensors["a"].count, report.tensors["b"].budget, report.step),
                         (7, 3, 4.0, 1))

    def test_states_are_saved_and_come_back(self):
        a, b = pair()
        optimizer = cautious.torch.SGDM([a, b], generic=True)
        a.grad = torch.ones(3)
        optimizer.step()
        saved = optimizer.state_dict()
        self.assertEqual(set(saved["state"]), {0})
        fresh = cautious.torch.SGDM(pair(), generic=True)
        fresh.load_state_dict(saved)
        self.assertTrue(torch.equal(list(fresh.state.values())[0]["m"], torch.ones(3)))
        self.assertEqual(list(fresh.state.values())[0]["step"], 1)

    def test_anchors_are_the_values_when_added(self):
        a, _ = pair()
        optimizer = cautious.torch.Optimizer([a], "adamw decay=anchored", generic=True)
        a.data.mul_(5)
        self.assertTrue(torch.equal(optimizer.state[a]["x0"], torch.ones(3)))

    def test_nonfinite_policies(self):
        for policy in ("skip", "error"):
            a, b = pair()
            optimizer = cautious.torch.AdamW([("a", a), ("b", b)], nonfinite=policy, generic=True)
            a.grad, b.grad = torch.ones(3), torch.full((2, 2), float("nan"))
            if policy == "error":
                with self.assertRaisesRegex(RuntimeError, "gradient of 'b' has 4 non-finite entries of 4"):
                    optimizer.step()
            else:
                optimizer.step()
                self.assertTrue(optimizer.report().skipped)
            self.assertEqual(self.reference.calls, [])

    def test_each_parameter_by_its_device(self):
        """One on the meta device, one here."""
        a, _ = pair()
        far = torch.nn.Parameter(torch.ones(2, device="meta"))
        optimizer = cautious.torch.AdamW([("near", a), ("far", far)])
        a.grad = torch.ones(3)
        optimizer.step()
        self.assertEqual(self.reference.calls, [])
        self.assertEqual([entry.slot for entry in optimizer._entries], [0, -1])
        self.assertEqual(optimizer.report().tensors["near"].count, 3)


class Reference(unittest.TestCase):
    def test_it_is_the_same_optimizer(self):
        """Elementwise recipes have the same bits; sums over a tensor and matrix products may differ in the last ones."""
        for recipe in cautious.recipe_names():
            for decay in cautious.decay_names():
                with self.subTest(recipe=recipe, decay=decay):
                    made = []
                    for generic in (False, True):
                        torch.manual_seed(0)
                        w = torch.nn.Parameter(torch.randn(6, 4))
                        optimizer = cautious.torch.Optimizer([("w", w)], f"{recipe} decay={decay}", 0.05, generic=generic,
                                                             seed=2)
                        for t in range(3):
                            w.grad = torch.randn(6, 4, generator=torch.Generator().manual_seed(t))
                            optimizer.step()
                        made.append((w.detach(), optimizer.report().total, optimizer.state[w]))
                    (a, total, state), (b, other, same) = made
                    torch.testing.assert_close(a, b, rtol=2e-5, atol=2e-6)
                    self.assertEqual(total[:4], other[:4])
                    self.assertEqual(set(state), set(same))
                    if recipe != "muon" and decay not in ("layerwise", "selective"):
                        self.assertTrue(torch.equal(a, b))


if __name__ == "__main__":
    unittest.main()
