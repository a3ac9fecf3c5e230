"""cautious.reference as it is used: properties of a step, messages, the Optimizer, copies of the files.

    /usr/bin/python3 -B tests/python/test_reference_use.py
"""
import itertools
import math
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import numpy as np
import torch

from test_reference import DECAYS, FOLDER, TYPES, randoms, reference, reference_bits, reference_recipe, same_bits

RECIPES = ["sgd", "sgdm", "adamw", "lion", "muon", "lion-k k=l2", "lion-k k=huber", "lion-k k=topk", "lion-k k=nuclear"]


class Properties(unittest.TestCase):
    def after(self, recipe, T, steps=1, **options):
        x, state = randoms((8, 16), T), {}
        for g in randoms((steps, 8, 16), T, seed=3):
            report = reference.step(f"{recipe} weight_decay=0.5", x, g, state, lr=0.05, **options)
        return x, state, report

    def test_a_coordinate_has_the_bits_of_plain_decay_or_of_none(self):
        masks = ("cautious", "opposed", "gradient", "random", "shuffled", "layerwise")
        for recipe, decay, T in itertools.product(RECIPES, masks, TYPES.values()):
            (x, _, report), (off, _, _), (on, _, _) = (
                self.after(f"{recipe} decay={name}", T) for name in (decay, "none", "decoupled"))
            self.assertTrue(bool(((x == off) | (x == on)).all()), f"{recipe} {decay}")
            if T != torch.bfloat16 and decay != "layerwise":
                changed, total = int(((x == on) & (on != off)).sum()), report["count"].item()
                self.assertLess(changed, total)
                self.assertLessEqual(abs(changed - report["decayed"].item()), 2, f"{recipe} {decay}")  # on == off by rounding

    def test_opposed_is_the_complement(self):
        for recipe in RECIPES:
            counts = [self.after(f"{recipe} decay={decay}", torch.float32)[2]["decayed"] for decay in ("cautious", "opposed")]
            self.assertEqual(sum(counts).item(), 128)

    def test_lion_k_l1_is_lion(self):
        for decay, T in itertools.product(DECAYS, TYPES.values()):
            lion, lion_k = (self.after(f"{rule} decay={decay}", T, 5) for rule in ("lion", "lion-k k=l1"))
            self.assertTrue(same_bits(lion[0], lion_k[0]) and same_bits(lion[1]["m"], lion_k[1]["m"]), decay)

    def test_top_k_breaks_ties_by_index(self):
        x = torch.zeros(1000)
        reference.step("lion-k k=topk fraction=0.1 decay=none", x, torch.ones(1000), {}, lr=1.0)
        self.assertTrue(bool((x[:100] == -1).all() and (x[100:] == 0).all()))

    def test_bins_of_size_are_joined_at_64(self):
        """Three sizes, of 63, 64 or 65 coordinates each."""
        for count in (63, 64, 65):
            sizes = torch.tensor([4.0, 2.0, 1.0]).repeat_interleave(count)
            strikes = torch.arange(3 * count) < count  # all of the largest, none of the others
            odds = reference_bits.odds_by_size(sizes, strikes) / 2**24
            shares = [1, 0, 0] if count >= 64 else [1 / 3] * 3  # 63 + 63 are a group, and the last 63 belong to it
            self.assertTrue(torch.allclose(odds, torch.tensor(shares).float().repeat_interleave(count), atol=1e-6), str(count))

    def test_selective_at_its_anchor_and_steps_of_length_zero(self):
        for T in TYPES.values():
            x = torch.full((4,), 2.0, dtype=T)
            reference.step("sgd decay=selective weight_decay=1", x, torch.ones_like(x), {"x0": torch.ones_like(x)}, lr=1.0)
            self.assertTrue(bool((x == 1).all()))  # w is 0: nothing to project
            reference.step("adamc decay=cautious", x, torch.ones_like(x), {}, lr=0.0)  # needs no peak
            self.assertTrue(bool((x == 1).all()))

    def test_split_is_f32_in_two_halves(self):
        for decay in ("cautious", "anchored", "random"):
            start, g = randoms((40,), torch.bfloat16), randoms((30, 40), torch.float32, seed=4)
            halves, whole, state, other = start.clone(), start.float(), {}, {}
            for i in range(30):
                reference.step(f"adamw decay={decay}", halves, g[i], state, lr=1e-3, rounding="split")
                reference.step(f"adamw decay={decay}", whole, g[i], other, lr=1e-3)
            self.assertTrue(same_bits(reference_bits.joined(halves, state["low"]), whole))

    def test_nearest_loses_weak_decay_and_the_others_keep_it(self):
        """The numbers of docs/spec.md, section 9."""
        ends = {}
        for rounding in ("nearest", "stochastic", "split"):
            x, state = torch.ones(512, dtype=torch.bfloat16), {}
            for _ in range(1000):
                reference.step("sgd weight_decay=0.1", x, torch.zeros_like(x), state, lr=1e-3, rounding=rounding)
            ends[rounding] = float((reference_bits.joined(x, state["low"]) if rounding == "split" else x).double().mean())
        self.assertEqual(ends["nearest"], 1.0)
        self.assertEqual(round(ends["split"], 4), 0.9048)
        self.assertLess(abs(ends["stochastic"] - 0.9048), 0.005)

    def test_report(self):
        x, g = randoms((9, 11), torch.float32), randoms((9, 11), torch.float32, seed=5)
        g[2, 3] = math.inf
        before = x.double().clone()
        report = reference.step("lion decay=cautious weight_decay=0.25", x, g, {}, lr=0.5)
        on = np.sign(g.numpy()) * before.numpy() >= 0
        expected = {"count": 99, "decayed": on.sum(), "active": on.sum(), "nonfinite": 1, "x2": (before**2).sum(),
                    "g2": math.inf, "u2": 99, "budget": 0.125 * np.abs(before.numpy())[on].sum()}
        self.assertEqual(list(sorted(report)), list(sorted(expected)))
        for name, value in expected.items():
            self.assertEqual(report[name].shape, (), name)
            self.assertTrue(np.isclose(float(report[name]), float(value), rtol=1e-12), name)

    def test_nothing_waits_for_a_number(self):
        """A meta tensor has no numbers to look at. Not here: shuffled, which does wait, and random, whose shifts meta
        tensors of torch 1.13 do not have."""
        for recipe, decay in itertools.product(RECIPES, set(DECAYS) - {"shuffled", "random"}):
            x, g = torch.empty((4, 6), device="meta"), torch.empty((4, 6), device="meta")
            report = reference.step(f"{recipe} decay={decay}", x, g, {}, lr=0.1)
            self.assertTrue(all(value.device.type == "meta" for value in report.values()), recipe)

    def test_the_core_stands_alone(self):
        """With exact() False it needs no other file, and is a few units in the last place away."""
        text = (FOLDER / "reference.py").read_text()
        x, g = randoms((4, 6), torch.float32), randoms((4, 6), torch.float32, seed=6)
        for recipe, exact in itertools.product(("adamw", "muon nesterov=on", "lion"), (True, False)):
            names = {"torch": torch, "math": math, **({"bits": reference_bits} if exact else {})}
            exec(text[text.index("# ---- Algorithm 1"):text.index("# ---- end of the core")], names)
            names["exact"] = lambda a: exact
            fields, zero = reference_recipe.parse(recipe), torch.zeros_like(x)
            u, _, _ = names[fields["rule"]](fields, 1, g, zero, zero)
            u = names["orthogonal"](u, fields) if fields["rule"] == "muon" else u
            copied = names["algorithm1"](x, u, x, ~names["opposite"](u, x), names["number"](0.1, x), names["number"](0.1, x))
            whole = x.clone()
            reference.step(f"{recipe} decay=cautious", whole, g, {}, lr=0.1)
            self.assertTrue(same_bits(copied, whole) if exact else torch.allclose(copied, whole, rtol=0, atol=1e-6), recipe)

    def test_without_exact_arithmetic_only_last_bits_change(self):
        """What other devices compute, here on the CPU."""
        for recipe, decay, T in itertools.product(RECIPES, DECAYS, (torch.float32, torch.float64)):
            x, state, report = self.after(f"{recipe} decay={decay}", T, 5)
            with unittest.mock.patch.object(reference, "exact", lambda a: False):
                other, other_state, other_report = self.after(f"{recipe} decay={decay}", T, 5)
            self.assertLess(float((x - other).abs().max()), 64 * torch.finfo(T).eps, f"{recipe} {decay}")
            self.assertEqual(report["decayed"], other_report["decayed"], f"{recipe} {decay}")
            self.assertEqual(set(state), set(other_state))

    def test_copied_files_work(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in FOLDER.glob("reference*.py"):
                shutil.copy(path, folder)
            line = "import torch, reference; x = torch.ones(3); reference.step('lion', x, x, {}, lr=0.1); print(x.tolist())"
            done = subprocess.run([sys.executable, "-B", "-c", line], cwd=folder, capture_output=True, text=True)
            self.assertEqual(done.stderr, "")
            self.assertIn("0.8", done.stdout)


class Messages(unittest.TestCase):
    def test_lines_that_are_wrong(self):
        recipes = "choices: sgd, sgdm, adam, adamw, adamc, lion, lion-k, muon"
        decays = ("choices: none, decoupled, cautious, opposed, gradient, random, shuffled, layerwise, selective, anchored")
        for line, at, message in (
                ("adamww", 1, f"no optimizer named 'adamww'; did you mean 'adamw'? {recipes}"),
                ("adamw decay=cautios", 7, f"no decay named 'cautios'; did you mean 'cautious'? {decays}"),
                ("lion beta1=2", 6, "beta1 of lion is '2'; valid: [0, 1)"),
                ("lion beta1=", 6, "beta1 of lion is '', not a number; valid: [0, 1)"),
                ("lion cautious", 6, "expected FIELD=VALUE, found 'cautious'"),
                ("lion =1", 6, "expected FIELD=VALUE, found '=1'"),
                ("lion beta1=0.5 beta1=0.6", 16, "beta1 is given twice"),
                ("adam weight_decay=1e999", 6, "weight_decay is '1e999'; valid: [0, inf)"),
                ("adam eps=1_0", 6, "eps of adam is '1_0', not a number; valid: [0, inf)"),
                ("muon steps=1.5", 6, "steps of the polar factor is '1.5', not a whole number; valid: [0, 100]"),
                ("muon blocks=0", 6, "blocks of the polar factor is '0'; valid: [1, 1000000000]"),
                ("muon nesterov=yes", 6, "no nesterov of muon named 'yes'; choices: off, on"),
                ("lion betta1=0", 6, "no field of lion with decay decoupled named 'betta1'; did you mean 'beta1'? choices: "
                 "beta1, beta2, decay, coupling, weight_decay"),
                ("lion-k k=l3", 8, "no k of lion-k named 'l3'; choices: l1, l2, lp, huber, relativistic, threshold, topk, "
                 "nuclear"),
                ("muon coefficients=1,2,3", 6, "coefficients are given, but schedule is 'paper'; they belong to schedule "
                 "'custom'")):
            with self.assertRaises(ValueError) as caught:
                reference_recipe.parse(line)
            self.assertEqual(str(caught.exception), f"recipe '{line}', character {at}: {message}")
        with self.assertRaisesRegex(ValueError, "^the recipe is empty; write one as in \"adamw decay=cautious beta2=0.95\""):
            reference_recipe.parse("")
        with self.assertRaisesRegex(ValueError, "mask=momentum is for rules that shape their direction"):
            reference_recipe.parse("lion mask=momentum decay=cautious")

    def test_a_step_that_fails_changes_nothing(self):
        vector, wide = torch.ones(4), torch.ones(4, dtype=torch.float64)
        for recipe, g, options in (("muon", vector, {}), ("adamc", vector, {}), ("adamw", vector, {"lr": -1.0}),
                                   ("adamw", vector, {"rounding": "up"}), ("adamw", wide, {}), ("adamw", torch.ones(3), {}),
                                   ("adamw", vector, {"decay_factor": math.nan})):
            x, state = torch.ones(4), {}
            with self.assertRaises(ValueError):
                reference.step(recipe, x, g, state, **{"lr": 0.1, **options})
            self.assertTrue(bool((x == 1).all()) and not state, str(options))


class AsOptimizer(unittest.TestCase):
    def model(self, T=torch.float32):
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).to(T)

    def train(self, model, optimizer, steps, schedule=None):
        inputs = randoms((64, 6), next(model.parameters()).dtype, seed=7)
        for _ in range(steps):
            optimizer.zero_grad()
            loss = (model(inputs) - inputs[:, :1].sin()).square().mean()
            loss.backward()
            optimizer.step()
            if schedule:
                schedule.step()
        return float(loss)

    def test_every_recipe_trains(self):
        for recipe, lr in {"adamw": 0.02, "adamc": 0.02, "lion": 0.01, "sgd": 0.3, "sgdm": 0.3}.items():
            model = self.model()
            optimizer = reference.Optimizer(model.parameters(), f"{recipe} decay=cautious", lr)
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
            first = self.train(model, optimizer, 1)
            self.assertLess(self.train(model, optimizer, 100, schedule), first / 4, recipe)
            self.assertEqual(optimizer.report["count"].item(), sum(p.numel() for p in model.parameters()))

    def test_the_peak_is_the_largest_lr_so_far(self):
        x = torch.nn.Parameter(randoms((6,)))
        alone, state, optimizer = x.detach().clone(), {}, reference.Optimizer([x], "adamc decay=cautious")
        for lr, peak in ((0.1, 0.1), (0.4, 0.4), (0.2, 0.4)):
            optimizer.param_groups[0]["lr"], x.grad = lr, torch.ones_like(x)
            optimizer.step()
            reference.step("adamc decay=cautious", alone, x.grad, state, lr=lr, lr_max=peak)
        self.assertTrue(same_bits(x, alone))

    def test_groups(self):
        model = self.model()
        matrices, vectors = ([p for p in model.parameters() if (p.dim() > 1) == wide] for wide in (True, False))
        optimizer = reference.Optimizer([{"params": matrices, "recipe": "muon decay=cautious scale=rms", "lr": 0.02},
                                         {"params": vectors, "recipe": "adamw decay=none"}], lr=0.01)
        first = self.train(model, optimizer, 1)
        self.assertLess(self.train(model, optimizer, 80), first / 4)
        self.assertEqual([sorted(optimizer.state[p]) for p in (matrices[0], vectors[0])], [["m", "step"], ["m", "step", "v"]])

    def test_continuing_is_never_having_stopped(self):
        for T, options in ((torch.float32, {}), (torch.float32, {"moments": "bf16"}), (torch.bfloat16, {"rounding": "split"}),
                           (torch.bfloat16, {"rounding": "stochastic"})):
            for recipe in ("adamw decay=random", "lion decay=anchored", "adamc decay=shuffled"):
                whole, stopped = self.model(T), self.model(T)
                self.train(whole, reference.Optimizer(whole.named_parameters(), recipe, 0.01, **options), 6)
                first = reference.Optimizer(stopped.named_parameters(), recipe, 0.01, **options)
                self.train(stopped, first, 3)
                second = reference.Optimizer(stopped.named_parameters(), recipe, 0.01, **options)
                second.load_state_dict(first.state_dict())
                self.train(stopped, second, 3)
                for a, b in zip(whole.parameters(), stopped.parameters()):
                    self.assertTrue(same_bits(a, b), f"{recipe} {T} {options}")

    def test_clipping_closures_and_parameters_without_gradient(self):
        x, idle = torch.nn.Parameter(randoms((5,))), torch.nn.Parameter(randoms((5,)))
        start = x.detach().clone()
        optimizer = reference.Optimizer([x, idle], "sgd decay=none", 0.5, grad_clip=1.0)

        def closure():
            optimizer.zero_grad()
            loss = 3 * x.sum()
            loss.backward()
            return loss

        loss = optimizer.step(closure)
        self.assertEqual(float(loss), float(3 * start.sum()))
        self.assertLess(float((start - x - 0.5 / math.sqrt(5)).abs().max()), 1e-15)
        self.assertEqual(dict(optimizer.state[idle]), {})


if __name__ == "__main__":
    unittest.main()
