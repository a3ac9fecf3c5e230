"""The controls of cautious.compare that repeat what the CWD runs recorded: random, with their density and on average their
budget, and budget, with exactly it, tensor by tensor and step by step."""
import functools
import json
import pathlib
import unittest

import torch

from cautious import _study
from cautious.compared import TRACE, folder
from cautious.torch import Optimizer
from controls import STEPS, Study, gradients, model, trace


class ControlsTest(Study):
    def expect_followed(self, seed=0, budget_tolerance=1e-6):
        """Per tensor: budget takes as much in every step, random as much on average, and strikes as often."""
        for arm in ("random", "budget"):
            cwd, own = self.steps["cwd", seed], self.steps[arm, seed]
            self.assertEqual(len(cwd), len(own))
            for name in cwd[0]:
                ours, theirs = [step[name] for step in own], [step[name] for step in cwd]
                if sum(t.budget for t in theirs) == 0:
                    self.assertEqual(sum(t.budget for t in ours), 0, (arm, name))
                    continue
                for a, b in zip(ours, theirs) if arm == "budget" else ():
                    self.assertAlmostEqual(a.budget / b.budget, 1, delta=budget_tolerance)
                    self.assertEqual(a.decayed, a.count)
                if arm == "random":
                    self.assertNotEqual([t.decayed for t in ours], [t.decayed for t in theirs])
                    self.assertLess(sum(t.ratio for t in theirs) / len(theirs), 0.45, "0.5 is that of any random mask")
                    density = [sum(t.ratio for t in each) / len(each) for each in (ours, theirs)]
                    spread = (density[1] * ours[0].count * len(ours)) ** -0.5  # of the number of strikes, relative
                    self.assertAlmostEqual(density[0] / density[1], 1, delta=5 * spread)
                    total = [sum(t.budget for t in each) for each in (ours, theirs)]
                    self.assertAlmostEqual(total[0] / total[1], 1, delta=6 * spread)

    def test_controls_take_what_cwd_took(self):
        for recipe in ("adamw", "lion", "muon", "adamc", "sgdm"):
            with self.subTest(recipe):
                self.out = pathlib.Path(self.folder.name) / recipe
                self.steps.clear()
                verdict = self.compare(self.train, recipe=recipe)
                self.assertEqual(verdict.failed, 0, self.failures())
                for seed in (0, 1):
                    self.expect_followed(seed)
                summaries = {arm: json.loads((self.run_of(arm) / "summary.json").read_text()) for arm in ("cwd", "budget")}
                self.assertGreater(summaries["cwd"]["decay_budget"], 0)
                self.assertAlmostEqual(summaries["budget"]["decay_budget"] / summaries["cwd"]["decay_budget"], 1, delta=1e-6)

    def test_the_report_has_both(self):
        verdict = self.compare(self.train)
        self.assertEqual(len(verdict.answers), 3)  # the prespecified questions are those of `cautious compare`
        self.assertRegex(verdict.answers[2], "cwd .* shuffled")
        page = pathlib.Path(verdict.report).read_text()
        for words in ("cwd - random", "cwd - budget", "that of cwd", "budget of cwd"):
            self.assertIn(words, page)

    def test_the_trace_is_what_the_reports_said(self):
        self.compare(self.train)
        names, densities, budgets = trace(self.run_of("cwd"))
        steps = self.steps["cwd", 0]
        self.assertEqual(names, list(steps[0]))
        for at, step in enumerate(steps):
            for i, name in enumerate(names):
                self.assertEqual(budgets[at, i].item(), step[name].budget)
                self.assertAlmostEqual(densities[at, i].item(), step[name].ratio, delta=1e-7)
        for arm in ("none", "plain", "shuffled", "opposed", "random", "budget"):
            self.assertEqual(list(self.out.glob(f"runs/{arm}_*/{TRACE}")), [], arm)
        self.assertEqual(list(self.out.glob(f"runs/cwd_*seed=100000_*/{TRACE}")), [], "nothing follows a tuning run")

    def test_other_devices(self):
        """generic=True sends every parameter the way of other devices."""
        verdict = self.compare(functools.partial(self.train, generic=True))
        self.assertEqual(verdict.failed, 0, self.failures())
        self.expect_followed()
        generic = self.steps
        self.steps, self.out = {}, self.out.with_name("core")
        self.compare(self.train)
        for key in (("random", 0), ("budget", 1)):
            for a, b in zip(generic[key], self.steps[key]):
                for name in a:
                    self.assertEqual(a[name].decayed, b[name].decayed, name)
                    self.assertAlmostEqual(a[name].budget, b[name].budget, delta=1e-6 * b[name].budget)

    def test_bf16_and_schedules(self):
        def change(step, layers, made):
            for group in made.param_groups:
                group["lr"] = 0.01 * (1 - step / STEPS)
                group["decay_factor"] = 1 if step < STEPS // 2 else 0.5
            if step == 3:
                torch.set_num_threads(3 - torch.get_num_threads())  # the core is made anew

        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            verdict = self.compare(functools.partial(self.train, dtype=torch.bfloat16, before=change))
        finally:
            torch.set_num_threads(threads)
        self.assertEqual(verdict.failed, 0, self.failures())
        self.expect_followed()

    def test_groups_of_their_own_decay_are_left_alone(self):
        train = functools.partial(self.train, parameters=lambda layers: [
            {"params": [("a", layers.a.weight)]}, {"params": [("b", layers.b.weight)], "decay": "opposed"},
            {"params": [("table", layers.table.weight)], "weight_decay": 0.0}])
        self.assertEqual(self.compare(train).failed, 0, self.failures())
        for arm in ("random", "budget"):
            own = [step["b"] for step in self.steps[arm, 0]]
            self.assertEqual(own, [step["b"] for step in self.steps["cwd", 0]])
            self.assertEqual({step["table"].budget for step in self.steps[arm, 0]}, {0.0})

    def test_several_optimizers(self):
        def train(optimizer, seed):
            generator = torch.Generator().manual_seed(seed)
            torch.manual_seed(seed)
            layers = model()
            pair = [optimizer([layers.a.weight]), optimizer([layers.b.weight]), optimizer([layers.table.weight])]
            found = self.steps[optimizer.arm, seed] = []
            for step in range(STEPS):
                gradients(layers, generator)
                pair[0].step()
                if step % 3 == 0:
                    pair[1].step()  # and the last one never
                    found.append({str(at): made.report().tensors["0"] for at, made in enumerate(pair[:2])})
            return self.loss(optimizer, seed)

        self.assertEqual(self.compare(train).failed, 0, self.failures())
        self.assertEqual([len(trace(folder(str(self.run_of("cwd")), at))[1]) for at in range(3)], [STEPS, STEPS // 3, 0])
        for a, b in zip(self.steps["budget", 0], self.steps["cwd", 0]):
            for name in a:
                self.assertAlmostEqual(a[name].budget / b[name].budget, 1, delta=1e-6)

    def test_skipped_steps_do_not_count(self):
        def spoil(step, layers, made):
            if step % 4 == 1:
                layers.a.weight.grad[0, 0] = torch.nan

        train = functools.partial(self.train, nonfinite="skip", before=spoil)
        self.assertEqual(self.compare(train).failed, 0, self.failures())
        self.assertEqual(len(trace(self.run_of("cwd"))[1]), STEPS - STEPS // 4)
        self.expect_followed()

    def test_interrupted_runs_begin_again_or_continue(self):
        """From the start, and from a checkpoint in the run's directory."""
        for resumes in (False, True):
            for arm in ("cwd", "random"):
                with self.subTest(resumes=resumes, arm=arm):
                    self.out = pathlib.Path(self.folder.name) / f"{resumes}-{arm}"
                    self.steps.clear()
                    verdict = self.interrupted(arm, resumes)
                    self.assertEqual(verdict.failed, 0, self.failures())
                    self.assertEqual(len(trace(self.run_of("cwd"))[1]), STEPS)
                    for seed in (0, 1):
                        self.expect_followed(seed)
                    budget = json.loads((self.run_of(arm) / "summary.json").read_text())["decay_budget"]
                    total = sum(t.budget for step in self.steps[arm, 0] for t in step.values())
                    self.assertAlmostEqual(budget / total, 1, delta=1e-9)

    def interrupted(self, arm, resumes):
        left = [1]

        def train(optimizer, seed):
            generator = torch.Generator().manual_seed(seed)
            torch.manual_seed(seed)
            layers = model()
            made, file = optimizer(layers), pathlib.Path(optimizer.directory) / "checkpoint.pt"
            found = self.steps[optimizer.arm, seed] = []
            done = 0
            if resumes and file.exists():
                done, weights, state, found[:], random = torch.load(file, weights_only=False)
                layers.load_state_dict(weights)
                made.load_state_dict(state)
                generator.set_state(random)
            for step in range(done, STEPS):
                gradients(layers, generator)
                made.step()
                found.append(made.report().tensors)
                if step == 4:
                    torch.save((5, layers.state_dict(), made.state_dict(), found, generator.get_state()), file)
                if step == 7 and optimizer.arm == arm and seed == 0 and left:
                    left.pop()
                    raise KeyboardInterrupt
            return self.loss(optimizer, seed)

        with self.assertRaises(KeyboardInterrupt):
            self.compare(train)
        if arm == "cwd":
            self.assertEqual(list(self.out.glob("runs/random_*")), [], "half a trace is not followed")
        return self.compare(train)

    def test_a_state_of_another_run_is_a_start(self):
        """As when a trained model is tuned further: steps of the optimizer are not those of the run."""
        layers = model()
        before = Optimizer([{"params": [("w", layers.a.weight)]}], "adamw decay=cautious")
        for _ in range(3):
            gradients(layers, torch.Generator().manual_seed(9))
            before.step()

        def load(step, layers, made):
            if step == 0:
                own = {key: value for key, value in made.param_groups[0].items() if key != "params"}
                state = before.state_dict()
                state["cautious"]["settings"] = made.state_dict()["cautious"]["settings"]  # the seed is that of the run
                made.load_state_dict(state)
                made.param_groups[0].update(own)

        train = functools.partial(self.train, parameters=lambda layers: [("w", layers.a.weight)], before=load)
        self.assertEqual(self.compare(train).failed, 0, self.failures())
        self.expect_followed()

    def test_follow_is_bounded(self):
        """Never more than all of a weight, and nothing where there is nothing."""
        _study.DecayTraceWriter(self.folder.name, ["a", "b", "c"], 0).add([(8, 4, 100.0), (8, 4, 1.0), (8, 0, 0.0)])
        for what, density in (("density", 0.5), ("budget", 1.0)):
            reference = _study.ReferenceRun(what, self.folder.name, ["a", "b", "c"])
            densities, factors = reference.follow(1, [(0.1, 2.0), (0.1, 0.0), (0.1, 3.0)])
            self.assertEqual(densities[:2], [density] * 2)
            self.assertEqual(factors, [10.0, 0.0, 0.0])


if __name__ == "__main__":
    unittest.main()
