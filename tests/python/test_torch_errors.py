"""Wrong use of cautious.torch: a ValueError or TypeError that names the parameter, the value and the choices; nothing has
changed."""
import unittest

import torch

import cautious.torch
from cautious.torch import AdamW


def leaf(*shape, dtype=torch.float32):
    return torch.nn.Parameter(torch.ones(*shape, dtype=dtype))


class Errors(unittest.TestCase):
    def refused(self, message, call, kinds=(TypeError, ValueError)):
        with self.subTest(message), self.assertRaises(kinds) as caught:
            call()
        self.assertIn(message, str(caught.exception))

    def test_parameters(self):
        w, named = leaf(3), lambda tensor: AdamW([("layer.w", tensor)])
        self.refused("list of parameters is empty", lambda: AdamW([]), ValueError)
        self.refused("params is a tensor", lambda: AdamW(w), TypeError)
        self.refused("'0' is a float", lambda: AdamW([1.0]), TypeError)
        self.refused("'layer.w' is torch.int64", lambda: named(torch.arange(3)), TypeError)
        self.refused("'layer.w' is torch.float16", lambda: named(torch.ones(3, dtype=torch.float16)), TypeError)
        self.refused("'layer.w' is torch.complex64", lambda: named(torch.ones(3, dtype=torch.complex64)), TypeError)
        self.refused("'layer.w' is torch.sparse_coo", lambda: named(torch.eye(3).to_sparse()), TypeError)
        self.refused("'layer.w' is not a leaf", lambda: named(w * 2), ValueError)
        self.refused("'layer.w' does not lie row after row", lambda: named(torch.ones(3, 4).t()), ValueError)
        self.refused("strides [0, 1]", lambda: named(torch.ones(3).expand(2, 3)), ValueError)
        self.refused("'1' is the same tensor as '0'", lambda: AdamW([w, w]), ValueError)
        self.refused("'b' is the same tensor as 'a'", lambda: AdamW([{"params": [("a", w)]}, {"params": [("b", w)]}]),
                     ValueError)
        self.refused("two parameters are named 'a'", lambda: AdamW([("a", w), ("a", leaf(2))]), ValueError)
        self.refused("a set has no order", lambda: AdamW([{"params": {w}}]), TypeError)
        self.refused("params must be a list; there is none", lambda: AdamW([{"lr": 1}]), TypeError)
        self.refused("tensor 'layer.w' of shape [3] is no matrix", lambda: cautious.torch.Optimizer([("layer.w", w)], "muon"),
                     ValueError)

    def test_keywords(self):
        w = leaf(3)
        self.refused("did you mean 'weight_decay'", lambda: AdamW([w], weigth_decay=1))
        self.refused("did you mean 'cautious'", lambda: AdamW([w], decay="cautios"))
        self.refused("did you mean 'lr'", lambda: AdamW([w], lrr=1))
        self.refused("group 0: ", lambda: AdamW([{"params": [w], "weigth_decay": 1}]))
        self.refused("choices: nearest, stochastic, split", lambda: AdamW([w], rounding="up"))
        self.refused("choices: propagate, skip, error", lambda: AdamW([w], nonfinite="skp"))
        self.refused("moments", lambda: AdamW([w], moments="f64"))
        self.refused("beta1 of adam is '1.5'; valid: [0, 1)", lambda: AdamW([w], betas=(1.5, 0.9)))
        self.refused("betas is 0.9; it must be two numbers", lambda: AdamW([w], betas=0.9))
        self.refused("group 0: lr is -0.1", lambda: AdamW([w], lr=-0.1))
        self.refused("weight_decay is a dict", lambda: AdamW([w], weight_decay={}))
        self.refused("seed", lambda: AdamW([w], seed=-1))
        self.refused("no field of sgdm", lambda: cautious.torch.SGDM([w], eps=1))
        self.refused("did you mean 'adamw'", lambda: cautious.torch.Optimizer([w], "adamww"))
        self.refused("not a int", lambda: cautious.torch.Optimizer([w], 3))
        self.refused("mask", lambda: AdamW([w], mask="momentum"))
        self.refused("unknown keyword 'foreach'", lambda: AdamW([w], foreach=True))

    def test_a_group_that_does_not_fit_is_not_added(self):
        w = leaf(3)
        optimizer = AdamW([w])
        self.refused("is no matrix", lambda: optimizer.add_param_group({"params": [leaf(4)], "recipe": "muon"}))
        self.refused("same tensor", lambda: optimizer.add_param_group({"params": [w]}))
        self.assertEqual(len(optimizer.param_groups), 1)
        w.grad = torch.ones(3)
        optimizer.step()
        optimizer.param_groups[0]["params"].append(leaf(2))
        self.refused("group 0: 2 params, but 1 param_names", optimizer.step, ValueError)

    def test_gradients_and_parameters_that_changed(self):
        def spoiled(spoil):
            w, v = leaf(4, 3), leaf(2)
            optimizer = AdamW([("v", v), ("layer.w", w)])
            w.grad, v.grad = torch.ones(4, 3), torch.ones(2)
            optimizer.step()
            before = v.detach().clone()
            spoil(w)
            try:
                optimizer.step()
            finally:
                self.assertTrue(torch.equal(v, before))

        def data(of, value):
            of.data = value

        def sparse(w):
            w.grad = None
            torch.nn.functional.embedding(torch.tensor([1]), w, sparse=True).sum().backward()

        self.refused("gradient of 'layer.w' is torch.sparse_coo", lambda: spoiled(sparse), TypeError)
        self.refused("gradient of 'layer.w' is torch.float64", lambda: spoiled(lambda w: data(w.grad, w.grad.double())),
                     TypeError)
        self.refused("gradient of 'layer.w' is [3]", lambda: spoiled(lambda w: data(w.grad, torch.ones(3))), ValueError)
        self.refused("'layer.w' is torch.float32 [2, 3]; it was added as",
                     lambda: spoiled(lambda w: data(w, torch.ones(2, 3)) or data(w.grad, torch.ones(2, 3))),
                     ValueError)
        self.refused("'layer.w' does not lie row after row", lambda: spoiled(lambda w: data(w, torch.ones(3, 4).t())),
                     ValueError)
        self.refused("'layer.w' is torch.float64",
                     lambda: spoiled(lambda w: data(w, w.data.double()) or data(w.grad, w.grad.double())), ValueError)

    def test_states_that_do_not_fit(self):
        def made(*shapes, **options):
            optimizer = AdamW([(f"w{at}", leaf(*shape)) for at, shape in enumerate(shapes)], **options)
            for group in optimizer.param_groups:
                for p in group["params"]:
                    p.grad = torch.ones_like(p)
            optimizer.step()
            return optimizer

        good = made((4, 3)).state_dict()
        self.refused("m of 'w0' is [4, 3] in the state; the parameter is [5, 3]", lambda: made((5, 3)).load_state_dict(good))
        self.refused("has 1 parameters, this optimizer 2", lambda: made((4, 3), (2,)).load_state_dict(good))
        self.refused("seed=0, this optimizer has 3", lambda: made((4, 3), seed=3).load_state_dict(good))
        self.refused("it lacks 'state'", lambda: made((4, 3)).load_state_dict({}))
        self.refused("1 groups, this optimizer 2",
                     lambda: AdamW([{"params": [leaf(1)]}, {"params": [leaf(1)]}]).load_state_dict(good))
        lion = cautious.torch.Lion([("w0", leaf(4, 3))])
        self.refused("rule 'adam', this optimizer has 'lion'", lambda: lion.load_state_dict(good))
        self.refused("parameter 'w0' where this optimizer has 'v'", lambda: AdamW([("v", leaf(4, 3))]).load_state_dict(good))
        pieces = good["state"][0]
        for bad, message in (({**pieces, "v": pieces["v"].double()}, "v of 'w0' is torch.float64"),
                             ({"step": 1, "m": pieces["m"]}, "needs step, m, v"),
                             ({**pieces, "step": -3}, "step of 'w0' is -3")):
            optimizer = made((4, 3))
            before = [value.clone() for name, value in sorted(optimizer.state_dict()["state"][0].items()) if name != "step"]
            self.refused(message, lambda: optimizer.load_state_dict({**good, "state": {0: bad}}))
            after = [value for name, value in sorted(optimizer.state_dict()["state"][0].items()) if name != "step"]
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(before, after)))
        self.refused("parameters that no group has: 7",
                     lambda: made((4, 3)).load_state_dict({**good, "state": {0: pieces, 7: pieces}}))


if __name__ == "__main__":
    unittest.main()
