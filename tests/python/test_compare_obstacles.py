"""Where the controls random and budget of cautious.compare cannot repeat what CWD did: one line says why, and the rest of the
study goes on."""
import copy
import functools
import pathlib
import unittest

from cautious.compared import TRACE
from controls import STEPS, Study, model


class ObstaclesTest(Study):
    def test_a_longer_control_is_an_error(self):
        verdict = self.compare(lambda o, seed: self.train(o, seed, steps=STEPS + (o.arm in ("random", "budget"))))
        self.assertEqual(verdict.failed, 4)
        for arm in ("random", "budget"):
            self.assertRegex(self.failures()[arm], f"its decay trace has {STEPS} steps, this run is at step {STEPS + 1}; all runs")

    def test_other_parameters_are_an_error(self):
        verdict = self.compare(lambda o, seed: self.train(o, seed, names=("a", "c" if o.arm == "random" else "b")))
        self.assertEqual(verdict.failed, 2)
        self.assertRegex(self.failures()["random"], "where it has 'b.weight', this one has 'c.weight'")

    def test_another_number_of_optimizers_is_an_error(self):
        def more(optimizer, seed):
            for _ in range(2 if optimizer.arm == "random" else 0 if optimizer.arm == "budget" else 1):
                self.train(optimizer, seed)
            return self.loss(optimizer, seed)

        self.assertEqual(self.compare(more).failed, 4)
        self.assertIn("this is optimizer 2 of the run, but its reference run", self.failures()["random"])
        self.assertIn("this run made 0 of the 1 optimizers", self.failures()["budget"])

    def test_without_an_optimizer_of_ours_there_is_nothing_to_repeat(self):
        calls = []

        def train(optimizer, seed):
            calls.append(optimizer.arm)
            return self.loss(optimizer, seed)

        verdict = self.compare(train)
        self.assertEqual(verdict.failed, 4)
        self.assertFalse({"random", "budget"} & set(calls), "they fail before they are made")
        self.assertRegex(self.failures()["random"], "^its reference run, cwd_.*, recorded no decay to repeat")
        self.assertRegex(verdict.answers[2], "cwd .* shuffled")
        before = len(calls)
        self.assertEqual(self.compare(train).failed, 4)
        self.assertEqual(len(calls), before, "no finished run is made again")

    def test_parameters_that_change_on_the_way(self):
        def join(step, layers, made):
            if step == 2:
                made.add_param_group({"params": [("b", layers.b.weight)]})

        train = functools.partial(self.train, parameters=lambda layers: [("a", layers.a.weight)], before=join)
        self.assertEqual(self.compare(train).failed, 4)
        self.assertRegex(self.failures()["budget"], "recorded no decay to repeat")

    def test_a_damaged_trace_is_refused(self):
        def train(optimizer, seed):
            number = self.train(optimizer, seed)
            if optimizer.arm == "cwd" and seed == 0:
                (pathlib.Path(optimizer.directory) / TRACE).write_bytes(b"nothing\n")
            return number

        self.assertEqual(self.compare(train).failed, 2)
        self.assertIn("not a decay trace", self.failures()["random"])

    def test_copies_are_refused(self):
        def train(optimizer, seed):
            with self.assertRaisesRegex(TypeError, "cannot be copied; its state_dict"):
                copy.deepcopy(optimizer(model()))
            return self.loss(optimizer, seed)

        self.compare(train)


if __name__ == "__main__":
    unittest.main()
