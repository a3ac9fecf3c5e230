"""cautious.torch as a torch optimizer: groups and their changes, states, copies, closures, scalers, memory that moves."""
import copy
import io
import pickle
import unittest

import torch

import cautious.torch


def model(dtype=torch.float32):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).to(dtype)


def gradients(net, seed):
    made = torch.Generator().manual_seed(seed)
    for p in net.parameters():
        p.grad = torch.randn(p.shape, generator=made).to(p.dtype)


def run(net, optimizer, steps, first=0):
    for t in range(first, first + steps):
        gradients(net, t)
        optimizer.step()


def flat(net):
    return torch.cat([p.detach().double().flatten() for p in net.parameters()])


class Groups(unittest.TestCase):
    def test_entries_count_when_they_change(self):
        """A change between two steps is what a new optimizer with that value and the same state does."""
        changes = {"lr": 0.5, "betas": (0.5, 0.6), "eps": 0.1, "weight_decay": 2.0, "decay": "decoupled", "decay_factor": 0.5,
                   "coupling": "squared", "lr_max": 4.0, "mask": "direction"}
        for key, value in changes.items():
            with self.subTest(key):
                net, other = model(), model()
                coupled = {"coupling": "independent"} if key == "lr_max" else {}
                optimizer = cautious.torch.AdamW(net.named_parameters(), lr=0.1, **coupled)
                run(net, optimizer, 3)
                optimizer.param_groups[0][key] = value
                other.load_state_dict(net.state_dict())
                fresh = cautious.torch.AdamW(other.named_parameters(), **{"lr": 0.1, **coupled, key: value})
                saved = optimizer.state_dict()
                saved["param_groups"][0]["highest_lr"] = 0.1
                fresh.load_state_dict(saved)
                before = flat(net)
                run(net, optimizer, 2, first=3)
                run(other, fresh, 2, first=3)
                self.assertTrue(torch.equal(flat(net), flat(other)))
                self.assertFalse(torch.equal(flat(net), before))

    def test_a_change_matters(self):
        for key, value in {"betas": (0.5, 0.6), "eps": 0.1, "weight_decay": 2.0, "decay": "none"}.items():
            nets = model(), model()
            for net, change in zip(nets, ({}, {key: value})):
                optimizer = cautious.torch.AdamW(net.parameters(), lr=0.1, weight_decay=0.5)
                run(net, optimizer, 1)
                optimizer.param_groups[0].update(change)
                run(net, optimizer, 1, first=1)
            self.assertFalse(torch.equal(flat(nets[0]), flat(nets[1])), key)

    def test_bad_changes_are_refused_and_leave_everything(self):
        for key, value, message in (("lr", -1, "group 0: lr is -1"), ("betas", (0.9, 1.5), "beta2 of adam is '1.5'"),
                                    ("decay", "cautios", "did you mean 'cautious'"), ("rule", "lion", "cannot become 'lion'"),
                                    ("weight_decay", "much", "weight_decay"), ("lr", float("nan"), "lr is nan")):
            net = model()
            optimizer = cautious.torch.AdamW(net.parameters())
            run(net, optimizer, 1)
            before, state = flat(net), copy.deepcopy(optimizer.state_dict()["state"])
            good = optimizer.param_groups[0][key]
            optimizer.param_groups[0][key] = value
            with self.subTest(message), self.assertRaises((TypeError, ValueError)) as caught:
                run(net, optimizer, 1, first=1)
            self.assertIn(message, str(caught.exception))
            self.assertTrue(torch.equal(flat(net), before))
            optimizer.param_groups[0][key] = good
            for at, there in optimizer.state_dict()["state"].items():
                self.assertTrue(torch.equal(there["m"], state[at]["m"]))
            run(net, optimizer, 1, first=1)

    def test_groups_of_their_own(self):
        net = model()
        weights = [(n, p) for n, p in net.named_parameters() if n.endswith("weight")]
        biases = [(n, p) for n, p in net.named_parameters() if n.endswith("bias")]
        optimizer = cautious.torch.AdamW([{"params": weights, "weight_decay": 0.3},
                                          {"params": biases, "decay": "none", "lr": 0.5}], lr=0.1)
        run(net, optimizer, 1)
        tensors = optimizer.report().tensors
        self.assertEqual(list(tensors), ["0.weight", "2.weight", "0.bias", "2.bias"])
        self.assertEqual([tensors[name].decayed for name, _ in biases], [0, 0])
        self.assertGreater(tensors["0.weight"].decayed, 0)
        self.assertNotIn("mask", optimizer.param_groups[1])

    def test_groups_that_come_later_have_states_of_their_own(self):
        net, twin = model(), model()
        first, last = list(net.named_parameters())[:2], list(net.named_parameters())[2:]
        optimizer = cautious.torch.AdamW(first, lr=0.1)
        run(net, optimizer, 3)
        optimizer.add_param_group({"params": last, "recipe": "lion decay=cautious", "lr": 0.01})
        run(net, optimizer, 2, first=3)
        self.assertEqual([state["step"] for state in optimizer.state.values()], [5, 5, 2, 2])
        a = cautious.torch.AdamW(list(twin.parameters())[:2], lr=0.1)
        run(twin, a, 5)
        self.assertTrue(torch.equal(flat(net)[:56], flat(twin)[:56]))

    def test_muon_routes(self):
        net = torch.nn.Sequential(torch.nn.Embedding(50, 4), torch.nn.Linear(4, 4), torch.nn.Linear(4, 40))
        for options in ({"max_side": 39}, {"rest_names": ["0.*", "2.weight"]}):
            optimizer = cautious.torch.Muon(net.named_parameters(), lr=0.02, **options)
            self.assertEqual([(g["name"], g["rule"], g["decay"], g["param_names"]) for g in optimizer.param_groups],
                             [("matrices", "muon", "cautious", ["1.weight"]),
                              ("rest", "adam", "cautious", ["0.weight", "2.weight"]),
                              ("vectors", "adam", "none", ["1.bias", "2.bias"])])
            run(net, optimizer, 2)
        scalar = cautious.torch.Muon([torch.nn.Parameter(torch.ones(()))])
        self.assertEqual(scalar.param_groups[0]["name"], "vectors")


class Steps(unittest.TestCase):
    def test_parameters_without_gradient_are_left_out(self):
        net = model()
        optimizer = cautious.torch.AdamW(net.named_parameters())
        run(net, optimizer, 1)
        before = flat(net)
        gradients(net, 1)
        first, *others = net.parameters()
        for p in others:
            p.grad = None
        optimizer.step()
        self.assertTrue(torch.equal(flat(net)[48:], before[48:]))
        self.assertEqual([state["step"] for state in optimizer.state.values()], [2, 1, 1, 1])
        self.assertEqual(optimizer.report().total.count, first.numel())
        optimizer.zero_grad(set_to_none=True)
        optimizer.step()
        self.assertEqual(optimizer.report().total.count, 0)

    def test_closure_has_gradients_and_its_value_is_returned(self):
        net = model()
        optimizer = cautious.torch.Lion(net.parameters(), lr=0.01)

        def closure():
            optimizer.zero_grad()
            loss = net(torch.ones(2, 6)).square().sum()
            loss.backward()
            return loss

        with torch.no_grad():
            values = [float(optimizer.step(closure)) for _ in range(10)]
        self.assertLess(values[-1], values[0])

    def test_gradients_in_another_order_of_memory(self):
        a, b = torch.nn.Parameter(torch.ones(4, 6)), torch.nn.Parameter(torch.ones(4, 6))
        g = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
        for p, gradient in ((a, g.t()), (b, g.t().contiguous())):
            p.grad = gradient
            cautious.torch.AdamW([p]).step()
        self.assertTrue(torch.equal(a, b))
        self.assertFalse(torch.equal(a, torch.ones(4, 6)))

    def test_parameters_whose_memory_moves(self):
        net, twin = model(), model()
        optimizer, other = (cautious.torch.AdamW(each.parameters(), lr=0.1) for each in (net, twin))
        for t in range(4):
            for p in net.parameters():
                p.data = p.data.clone()
            run(net, optimizer, 1, first=t)
            run(twin, other, 1, first=t)
        self.assertTrue(torch.equal(flat(net), flat(twin)))

    def test_autograd_notices_the_change(self):
        w = torch.nn.Parameter(torch.ones(3))
        optimizer = cautious.torch.AdamW([w])
        loss = (w * w).sum()
        w.grad = torch.ones(3)
        version = w._version
        optimizer.step()
        self.assertGreater(w._version, version)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            loss.backward()

    def test_bits_do_not_depend_on_threads(self):
        outs, before = [], torch.get_num_threads()
        for plan in ((1, 1), (2, 2), (1, 2)):
            torch.manual_seed(0)
            x = torch.nn.Parameter(torch.randn(300, 700))
            optimizer = cautious.torch.Optimizer([x], "adamw decay=random", seed=3)
            for t, threads in enumerate(plan):
                torch.set_num_threads(threads)
                x.grad = torch.randn(300, 700, generator=torch.Generator().manual_seed(t))
                optimizer.step()
            outs.append(x.detach().clone())
        torch.set_num_threads(before)
        self.assertTrue(torch.equal(outs[0], outs[1]) and torch.equal(outs[0], outs[2]))

    def test_scaled_gradients(self):
        """What GradScaler of torch 2 leaves to an optimizer: found_inf and grad_scale."""
        net, twin = model(), model()
        optimizer, other = (cautious.torch.AdamW(each.parameters(), lr=0.1) for each in (net, twin))
        gradients(net, 0)
        gradients(twin, 0)
        for p in net.parameters():
            p.grad.mul_(1024)
        optimizer.found_inf, optimizer.grad_scale = torch.ones(1), torch.tensor(1024.0)
        before = flat(net)
        optimizer.step()
        self.assertTrue(torch.equal(flat(net), before))
        self.assertTrue(optimizer.report().skipped)
        optimizer.found_inf = torch.zeros(1)
        optimizer.step()
        other.step()
        self.assertTrue(torch.equal(flat(net), flat(twin)))

    def test_nonfinite_policies(self):
        for policy in ("propagate", "skip", "error"):
            net = model()
            optimizer = cautious.torch.AdamW(net.named_parameters(), nonfinite=policy)
            run(net, optimizer, 1)
            before = flat(net)
            gradients(net, 1)
            net[0].bias.grad[2] = float("nan")
            if policy == "error":
                with self.assertRaisesRegex(RuntimeError, "gradient of '0.bias' has 1 non-finite entries of 8"):
                    optimizer.step()
            else:
                optimizer.step()
                self.assertEqual((optimizer.report().skipped, optimizer.report().step),
                                 (policy == "skip", 1 if policy == "skip" else 2))
            self.assertEqual(torch.equal(flat(net), before), policy != "propagate")


class Copies(unittest.TestCase):
    def ways(self, optimizer):
        buffer = io.BytesIO()
        torch.save(optimizer.state_dict(), buffer)
        buffer.seek(0)
        yield "torch.save", torch.load(buffer)
        yield "state_dict", optimizer.state_dict()
        yield "pickle", pickle.loads(pickle.dumps(optimizer.state_dict()))

    def test_states_continue_bitwise(self):
        for recipe in ("adamw decay=cautious coupling=corrected", "adamw decay=anchored", "lion decay=random",
                       "muon decay=cautious", "sgd"):
            for dtype in (torch.float32, torch.bfloat16):
                net = torch.nn.Linear(6, 5, bias=False).to(dtype)
                optimizer = cautious.torch.Optimizer(net.named_parameters(), recipe, 0.05, seed=3, rounding="split")
                run(net, optimizer, 3)
                for way, saved in self.ways(optimizer):
                    with self.subTest(recipe=recipe, dtype=dtype, way=way):
                        whole, half = copy.deepcopy((net, optimizer)), copy.deepcopy(net)
                        fresh = cautious.torch.Optimizer(half.named_parameters(), recipe, 0.1, seed=3, rounding="split")
                        fresh.load_state_dict(saved)
                        for each, its in (whole, (half, fresh)):
                            its.param_groups[0]["lr"] = 0.02
                            run(each, its, 3, first=3)
                        self.assertTrue(torch.equal(flat(whole[0]), flat(half)))
                        self.assertEqual(whole[1].report().total, fresh.report().total)
                        self.assertEqual(fresh.report().step, 6)

    def test_copies_of_the_optimizer(self):
        net = model()
        optimizer = cautious.torch.AdamW(net.named_parameters(), lr=0.05, seed=1)
        run(net, optimizer, 3)
        for clone in (copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))):
            other, its = clone((net, optimizer))
            twin = copy.deepcopy((net, optimizer))
            run(other, its, 2, first=3)
            run(*twin, 2, first=3)
            self.assertTrue(torch.equal(flat(other), flat(twin[0])))
            self.assertFalse(torch.equal(flat(other), flat(net)))

    def test_the_state_is_not_a_copy(self):
        net = model()
        optimizer = cautious.torch.AdamW(net.parameters())
        self.assertEqual(len(optimizer.state), 0)
        run(net, optimizer, 1)
        optimizer.state[net[0].weight]["m"].zero_()
        self.assertEqual(float(optimizer.state_dict()["state"][0]["m"].abs().sum()), 0)
        optimizer.state = {}
        self.assertEqual(len(optimizer.state), 0)


if __name__ == "__main__":
    unittest.main()
