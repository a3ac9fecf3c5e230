"""cautious.compare with a stand-in for the optimizer: the loop, its failures and its continuation. Controls that repeat what
was recorded are tested in test_compare_controls.py, verdicts and reports in tests/program."""
import contextlib
import io
import json
import math
import os
import pathlib
import random
import sys
import tempfile
import time
import types
import unittest
from types import SimpleNamespace

import torch

from cautious.compare import compare, number_of

LAMBDAS = [0.05, 0.2, 1]


class Optimizer:
    """In place of cautious.torch.Optimizer. Every step removes 0.5."""

    def __init__(self, params, *, recipe, lr, **options):
        self.params, self.recipe, self.lr, self.options = list(params), recipe, lr, options
        self.fields = dict(word.split("=") for word in recipe.split()[1:])
        self.param_groups = [{"param_names": ["w"]}]

    def step(self, closure=None):
        return "stepped"

    def report(self):
        tally = SimpleNamespace(count=2, decayed=1, budget=0.5)
        return SimpleNamespace(skipped=False, total=tally, tensors={"w": tally})


def model():
    return torch.nn.Sequential(torch.nn.Embedding(5, 2), torch.nn.Linear(2, 3), torch.nn.LayerNorm(3))


def helpful(optimizer, seed):
    """Decay helps, most at 0.2; the mask does not matter."""
    made = optimizer([1])
    lam = float(made.fields["weight_decay"]) / (1 if made.fields["decay"] == "decoupled" else 2.5)
    noise = random.Random(f"{seed} {made.recipe}").gauss(0, 0.0002)
    return 2 + random.Random(seed).gauss(0, 0.02) + noise - (0 if lam == 0 else 0.1 if lam == 0.2 else 0.05)


class CompareTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.out = pathlib.Path(self.folder.name) / "study"
        self.calls = []
        stand_in = types.ModuleType("cautious.torch")
        stand_in.Optimizer = Optimizer
        sys.modules["cautious.torch"] = stand_in

    def tearDown(self):
        sys.modules.pop("cautious.torch", None)
        self.folder.cleanup()

    def compare(self, train, **arguments):
        def counted(optimizer, seed):
            self.calls.append((optimizer.arm, optimizer.recipe, seed))
            return train(optimizer, seed)

        self.said = io.StringIO()
        with contextlib.redirect_stderr(self.said):
            return compare(counted, **{**dict(lr=1e-3, lambdas=LAMBDAS, seeds=3, out=self.out, unit="nats"), **arguments})

    def summaries(self):
        return [json.loads(file.read_text()) for file in self.out.glob("runs/*/summary.json")]

    def test_verdict_and_report(self):
        verdict = self.compare(helpful)
        self.assertRegex(verdict.answers[0],
                         r"^Weight decay helps here: plain \(weight_decay=0.2\) has a lower loss than none, by 0\.")
        self.assertIn("practically equal, within 0.005 nats", verdict.answers[1])
        self.assertEqual(verdict.failed, 0)
        self.assertIn(verdict.answers[0], str(verdict).replace("\n", " "))
        self.assertEqual(pathlib.Path(verdict.report), self.out / "report.html")
        self.assertIn("Weight decay helps here", (self.out / "report.html").read_text())
        self.assertEqual({arm for arm, recipe, seed in self.calls}, {"none", "plain", "cwd", "shuffled", "opposed", "random", "budget"})
        self.assertEqual(len(self.calls), len(set(self.calls)))
        self.assertEqual(len(self.calls), len(self.summaries()))
        lines = self.said.getvalue().splitlines()
        self.assertEqual(len(lines), len(self.calls))
        self.assertIn("100%", lines[-1])

    def test_quiet(self):
        self.compare(helpful, quiet=True)
        self.assertEqual(self.said.getvalue(), "")

    def test_the_factory_makes_the_optimizer_of_the_run(self):
        def train(optimizer, seed):
            made = optimizer([5], moments="bf16")
            self.assertIsInstance(made, Optimizer)
            self.assertEqual((made.params, made.recipe, made.lr), ([5], optimizer.recipe, 1e-3))
            self.assertEqual(made.options, {"seed": seed, "moments": "bf16"})
            self.assertEqual(made.fields["beta2"], "0.95")
            self.assertEqual(made.fields["decay"], optimizer.decay)
            self.assertEqual(float(made.fields["weight_decay"]), optimizer.weight_decay)
            self.assertTrue(pathlib.Path(optimizer.directory).is_dir())
            return helpful(optimizer, seed)

        self.assertEqual(self.compare(train, recipe="adamw beta2=0.95").failed, 0)

    def test_of_a_model_matrices_decay(self):
        def names(group):
            return [name for name, tensor in group["params"]]

        def adamw(optimizer, seed):
            matrices, vectors = optimizer(model()).params
            self.assertEqual(names(matrices), ["0.weight", "1.weight"])
            self.assertEqual(names(vectors), ["1.bias", "2.weight", "2.bias"])
            self.assertEqual(vectors["decay"], "none")
            return helpful(optimizer, seed)

        def muon(optimizer, seed):
            matrices, rest, vectors = optimizer(model()).params
            self.assertEqual([names(matrices), names(rest)], [["1.weight"], ["0.weight"]])
            self.assertEqual((rest["recipe"], rest["lr"]), (optimizer.rest, 1e-3))
            self.assertEqual((vectors["recipe"], vectors["decay"]), (optimizer.rest, "none"))
            return helpful(optimizer, seed)

        self.assertEqual(self.compare(adamw).failed, 0)
        self.out = self.out.with_name("muon")
        self.assertEqual(self.compare(muon, recipe="muon").failed, 0)

    def test_what_decay_removes_is_added_up(self):
        def train(optimizer, seed):
            for made in (optimizer([1]), optimizer([2])):
                self.assertEqual([made.step(), made.step()], ["stepped"] * 2)
            return helpful(optimizer, seed)

        self.compare(train)
        self.assertEqual({summary["decay_budget"] for summary in self.summaries()}, {2.0})
        self.out = self.out.with_name("other")
        self.compare(lambda optimizer, seed: 1.0 + seed)
        self.assertEqual({summary["decay_budget"] for summary in self.summaries()}, {None})

    def test_interrupted_it_continues(self):
        def until(count):
            def train(optimizer, seed):
                if len(self.calls) == count:
                    raise KeyboardInterrupt
                return helpful(optimizer, seed)
            return train

        kept = []
        for count in (1, 9):
            try:
                self.compare(until(count))
            except KeyboardInterrupt as interrupt:
                kept.append(interrupt)  # as a notebook does, and with it the frames
            self.assertIn("interrupted; the same call continues the study in", self.said.getvalue())
        verdict = self.compare(helpful)
        self.assertEqual(len(kept), 2)
        self.assertEqual(len(self.calls), len(self.summaries()) + 2)
        before = len(self.calls)
        self.assertEqual(str(self.compare(helpful)), str(verdict))
        self.assertEqual(len(self.calls), before)
        self.out = self.out.with_name("at_once")
        self.assertEqual(self.compare(helpful).answers, verdict.answers)

    def test_two_processes_share_the_runs(self):
        alone = self.compare(helpful)
        made, self.out, self.calls = len(self.calls), self.out.with_name("shared"), []

        def slow(optimizer, seed):
            time.sleep(0.02)
            return helpful(optimizer, seed)

        other = os.fork()
        if other == 0:
            try:
                same = self.compare(slow).answers == alone.answers
                (self.out.parent / "other").write_text(str(len(self.calls)))
                os._exit(0 if same else 1)
            finally:
                os._exit(2)
        self.assertEqual(self.compare(slow).answers, alone.answers)
        self.assertEqual(os.waitpid(other, 0)[1], 0)
        self.assertEqual(len(self.calls) + int((self.out.parent / "other").read_text()), made)

    def test_a_failure_is_recorded_and_tried_again(self):
        def train(optimizer, seed):
            if optimizer.arm == "opposed":
                raise OSError("no\nspace")
            return helpful(optimizer, seed)

        verdict = self.compare(train)
        self.assertEqual(verdict.failed, 3)
        self.assertTrue(verdict.answers[0].startswith("Weight decay helps here"))
        [first, *rest] = sorted(self.out.glob("runs/opposed*/failure.txt"))
        self.assertEqual(first.read_text(), "OSError: no space\n")
        log = (self.out / "logs" / (first.parent.name + ".txt")).read_text()
        self.assertIn("Traceback", log)
        self.assertIn("test_compare.py", log)
        self.assertEqual(self.compare(train).failed, 3)
        before = len(self.calls)
        self.assertEqual(self.compare(helpful).failed, 0)
        self.assertEqual(len(self.calls), before + 3)

    def test_when_all_fail_it_is_an_error(self):
        def train(optimizer, seed):
            raise ZeroDivisionError("first")

        with self.assertRaisesRegex(RuntimeError, "no run has a result") as raised:
            self.compare(train)
        self.assertIsInstance(raised.exception.__cause__, ZeroDivisionError)

    def test_what_train_may_return(self):
        class Tensor:
            def __float__(self):
                return 1.5

        self.assertEqual(number_of({"loss": 2, "other": "x"}, "loss"), 2.0)
        self.assertEqual(number_of(Tensor(), "loss"), 1.5)
        self.assertTrue(math.isnan(number_of(float("nan"), "loss")))
        with self.assertRaisesRegex(KeyError, "without 'error', the objective; it has"):
            number_of({"loss": 2}, "error")
        with self.assertRaisesRegex(TypeError, "train returned None; return the loss"):
            number_of(None, "loss")

    def test_what_is_not_finite_has_diverged(self):
        def train(optimizer, seed):
            return math.inf if optimizer.weight_decay == 2.5 else helpful(optimizer, seed)

        verdict = self.compare(train)
        self.assertIn("Training diverges at cwd (weight_decay=2.5) (2 of 2 runs)", str(verdict))

    def test_wrong_arguments_are_value_errors(self):
        for wrong, text in (({"recipe": "adamz"}, "did you mean"),
                            ({"recipe": "adamw weight_decay=0.1"}, "give lambdas"),
                            ({"recipe": "adamw beta2=2"}, "beta2"),
                            ({"lambdas": []}, "lambdas is missing"),
                            ({"lr": []}, "lr is missing"),
                            ({"lr": -1}, "lr"),
                            ({"target": 0}, "objective.target"),
                            ({"objective": "two\nlines"}, "objective.name"),
                            ({"seeds": 0}, "seeds")):
            with self.subTest(**wrong), self.assertRaisesRegex(ValueError, text):
                self.compare(helpful, **wrong)
            self.assertFalse(self.out.exists())
        self.out.mkdir()
        (self.out / "mine").write_text("")
        with self.assertRaisesRegex(ValueError, "not empty and not a study"):
            self.compare(helpful)
        self.assertEqual(self.calls, [])


if __name__ == "__main__":
    unittest.main()
