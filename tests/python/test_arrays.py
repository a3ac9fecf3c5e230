"""cautious.Optimizer over arrays of any origin: what is shared, what is refused, states, routing, orthogonal factors."""
import array
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

import cautious


def pair(shape=(4, 3), dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape).astype(dtype), rng.standard_normal(shape).astype(dtype)


def stepped(x, g, recipe="adamw decay=cautious", steps=3, **options):
    optimizer = cautious.Optimizer(recipe, **options)
    optimizer.add("x", x, g)
    for _ in range(steps):
        optimizer.step(0.05)
    return optimizer


class Interface:
    """An object with __array_interface__ alone."""

    def __init__(self, values):
        self.values = values
        self.__array_interface__ = values.__array_interface__


class Sharing(unittest.TestCase):
    def test_every_protocol_shares_memory(self):
        import torch
        x, g = pair((6,))
        expected = x.copy()
        stepped(expected, g)
        for name, make in {"buffer": lambda: array.array("d", x),
                           "memoryview": lambda: memoryview(bytearray(x.tobytes())).cast("d"),
                           "interface": lambda: Interface(x.copy()), "dlpack": lambda: torch.from_numpy(x.copy())}.items():
            with self.subTest(name):
                mine = make()
                stepped(mine, g)
                found = mine.values if name == "interface" else np.asarray(mine)
                self.assertEqual(found.tobytes(), expected.tobytes())

    def test_works_without_torch(self):
        code = ("import sys, cautious, numpy; cautious.replay(numpy.ones(3), numpy.ones((2, 3)), lr=0.1); "
                "sys.exit('torch' in sys.modules)")
        self.assertEqual(subprocess.run([sys.executable, "-c", code]).returncode, 0)

    def test_what_cannot_be_shared_is_refused(self):
        x, g = pair()
        frozen = x.copy()
        frozen.flags.writeable = False
        cases = {"a list": ([1.0, 2.0], None), "int64": (np.arange(3), None), "complex128": (x + 1j, None),
                 "float16": (x.astype(np.float16), None),
                 "row after row": (x.T, None), "read-only": (frozen, None), "gradient of 'x' is a list": (x, [1.0]),
                 "has shape [3], x has [4, 3]": (x, g[0].copy()), "f64 with a gradient of f32": (x, g.astype(np.float32)),
                 "shares memory with x": (x, x), ">f8": (x.astype(">f8"), None)}
        for message, (mine, gradient) in cases.items():
            with self.subTest(message), self.assertRaises((TypeError, ValueError)) as caught:
                cautious.Optimizer().add("x", mine, gradient)
            self.assertIn(message, str(caught.exception))

    def test_duplicates_and_unknown_names(self):
        x, g = pair()
        optimizer = stepped(x, g)
        for call, message in ((lambda: optimizer.add("x", x.copy(), g), "named 'x' already"),
                              (lambda: optimizer.add("y", x[1:], g[1:]), "shares memory with x of 'x'"),
                              (lambda: optimizer.gradient("y", g), "no tensor named 'y'"),
                              (lambda: optimizer.step(-1), "lr is -1"), (lambda: optimizer.step(float("nan")), "lr is nan"),
                              (lambda: cautious.Optimizer("adamw", sed=1), "did you mean 'seed'"),
                              (lambda: cautious.Optimizer("adamm"), "did you mean 'adam"),
                              (lambda: cautious.Optimizer("adamw decay=cautios"), "did you mean 'cautious'"),
                              (lambda: cautious.Optimizer("adamw", threads=-1), "threads"),
                              (lambda: cautious.Optimizer(3), "not a int")):
            with self.subTest(message), self.assertRaises((TypeError, ValueError)) as caught:
                call()
            self.assertIn(message, str(caught.exception))
        self.assertEqual(optimizer.names, ["x"])

    def test_a_second_thread_is_refused_not_a_race(self):
        x, g = pair((2000, 2000), np.float32)
        optimizer = stepped(x, g, steps=1)
        failures = []

        def work():
            for _ in range(20):
                try:
                    optimizer.step(0.01)
                except ValueError as error:
                    failures.append(str(error))

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual({each for each in failures} - {"another thread is using this optimizer; one step at a time"}, set())
        self.assertEqual(optimizer.state_dict()["x"]["step"] + len(failures), 41)


ENDLESS = """
import numpy, cautious
x, g = numpy.ones(300_000), numpy.ones(300_000)
optimizer = cautious.Optimizer()
optimizer.add("x", x, g)
print("ready", flush=True)
while True:
    optimizer.step(1e-9)
"""


class Interpreter(unittest.TestCase):
    def test_an_interrupt_ends_a_loop_of_steps(self):
        running = subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(running.stdout.readline(), "ready\n")
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=120)
        self.assertIn("KeyboardInterrupt", said)

    def test_other_threads_run_during_a_step(self):
        x, g = pair((1200, 1200), np.float32)
        optimizer = cautious.Optimizer("muon decay=cautious", threads=1)
        optimizer.add("x", x, g)
        step = threading.Thread(target=optimizer.step, args=(0.1,))
        step.start()
        turns = 0
        while step.is_alive():
            turns += 1
            step.join(0.01)
        self.assertGreater(turns, 5)


class States(unittest.TestCase):
    def test_both_ways_continue_bitwise(self):
        for recipe in ("adamw decay=cautious", "lion decay=random", "adamw decay=anchored", "sgd"):
            x, g = pair((40, 5), np.float32)
            whole = x.copy()
            expected = stepped(whole, g, recipe, steps=7, seed=5)
            half = x.copy()
            first = stepped(half, g, recipe, steps=4, seed=5)
            for way in ("dict", "file"):
                y = half.copy()
                second = cautious.Optimizer(recipe, seed=5)
                second.add("x", y, g)
                if way == "dict":
                    second.load_state_dict(first.state_dict())
                else:
                    with tempfile.TemporaryDirectory() as folder:
                        first.save(pathlib.Path(folder) / "state.safetensors")
                        second.load(pathlib.Path(folder) / "state.safetensors")
                for _ in range(3):
                    report = second.step(0.05)
                self.assertEqual(y.tobytes(), whole.tobytes(), recipe)
                self.assertEqual(report.total, expected.report().total)

    def test_what_does_not_fit_changes_nothing(self):
        x, g = pair()
        optimizer = stepped(x, g)
        before = optimizer.state_dict()
        good = optimizer.state_dict()["x"]
        for bad, message in (({}, "of the tensors []"), ({"x": {"step": 1, "m": good["m"]}}, "needs ['m', 'step', 'v']"),
                             ({"x": {**good, "v": good["v"][:2]}}, "v of 'x' is float64 [2, 3]"),
                             ({"x": {**good, "m": good["m"].astype(np.float32)}}, "m of 'x' is float32"),
                             ({"x": {**good, "step": -1}}, "step of 'x' is -1"),
                             ({"x": {**good, "step": 1.5}}, "step of 'x' is 1.5")):
            with self.subTest(message), self.assertRaises(ValueError) as caught:
                optimizer.load_state_dict(bad)
            self.assertIn(message, str(caught.exception))
        after = optimizer.state_dict()["x"]
        self.assertTrue(all(np.array_equal(after[name], before["x"][name]) for name in after))

    def test_files(self):
        x, g = pair()
        optimizer = stepped(x, g)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "state"
            with self.assertRaises(FileNotFoundError):
                optimizer.load(path)
            path.write_bytes(b"no safetensors")
            with self.assertRaises(RuntimeError):
                optimizer.load(path)
            with self.assertRaises(OSError):
                optimizer.save(pathlib.Path(folder) / "no" / "state")
            optimizer.save(path)
            other = stepped(x.copy(), g, "lion")
            with self.assertRaisesRegex(RuntimeError, "recipe of 'x' differs"):
                other.load(path)

    def test_the_state_is_not_a_copy_and_outlives_the_optimizer(self):
        x, g = pair()
        optimizer = stepped(x, g)
        m = optimizer.state("x")["m"]
        optimizer.step(0.05)
        self.assertTrue(np.array_equal(m, optimizer.state_dict()["x"]["m"]))
        del optimizer
        self.assertTrue(np.isfinite(m).all())


class Rest(unittest.TestCase):
    def test_nonfinite_policies(self):
        for policy in ("propagate", "skip", "error"):
            x, g = pair()
            g[1, 2] = np.inf
            optimizer = cautious.Optimizer("adamw", nonfinite=policy)
            optimizer.add("x", x, g)
            before = x.copy()
            if policy == "error":
                with self.assertRaisesRegex(RuntimeError, "gradient of 'x' has 1 non-finite entries of 12"):
                    optimizer.step(0.1)
            else:
                report = optimizer.step(0.1)
                self.assertEqual((report.skipped, report.total.nonfinite), (policy == "skip", 1))
            self.assertEqual(np.array_equal(x, before), policy != "propagate")

    def test_report(self):
        x, g = pair()
        report = stepped(x.copy(), g, "sgd decay=cautious weight_decay=0.5", steps=1).report()
        agree = g * x > 0
        self.assertEqual(report.total, report.tensors["x"])
        self.assertEqual((report.total.count, report.total.decayed, report.total.active), (12, agree.sum(), agree.sum()))
        self.assertAlmostEqual(report.total.rms_x, np.sqrt((x**2).mean()), places=14)
        self.assertAlmostEqual(report.total.budget, 0.05 * 0.5 * np.abs(x)[agree].sum(), places=14)
        self.assertTrue(np.isnan(cautious.Tally().ratio))
        self.assertIn("ratio=", repr(report))

    def test_routing(self):
        routing = cautious.Routing([cautious.Group("slow", "sgd decay=none", lr_multiplier=0.5),
                                    cautious.Group("fast", "sgd weight_decay=1", decay=False)],
                                   [cautious.Route("slow", pattern="a*"), cautious.Route("fast")])
        a, b, g = np.ones(2), np.ones(2), np.ones(2)
        optimizer = cautious.Optimizer(routing)
        optimizer.add("a", a, g)
        optimizer.add("b", b, g.copy())
        optimizer.step(0.5)
        self.assertEqual((a[0], b[0]), (0.75, 0.5))
        self.assertEqual(cautious.no_decay_on_vectors("adamw").group_of("bias", [7]), "vectors")
        with self.assertRaisesRegex(ValueError, "no route for tensor"):
            cautious.Routing([], []).group_of("x", [1])

    def test_bits_do_not_depend_on_threads(self):
        outs = set()
        for threads in (1, 2, 5):
            x, g = pair((300, 700), np.float32)
            stepped(x, g, "adamw decay=random", threads=threads)
            outs.add(x.tobytes())
        self.assertEqual(len(outs), 1)

    def test_polar(self):
        rng = np.random.default_rng(0)
        for shape in ((5, 3), (3, 5), (4, 4)):
            matrix = rng.standard_normal(shape)
            u, _, v = np.linalg.svd(matrix, full_matrices=False)
            np.testing.assert_allclose(cautious.polar(matrix, "exact"), u @ v, atol=1e-12)
            np.testing.assert_allclose(cautious.polar(matrix.astype(np.float32), "polar-express-8"), u @ v, atol=1e-3)
            self.assertEqual(cautious.polar(matrix.astype(np.float32)).dtype, np.float32)
        for arguments, message in ((([[1.0]],), "is a list"), ((np.ones(3),), "two sides"),
                                   ((np.ones((2, 2)), "papr"), "did you mean 'paper'"),
                                   ((np.ones((2, 2), int),), "int64")):
            with self.assertRaises((TypeError, ValueError)) as caught:
                cautious.polar(*arguments)
            self.assertIn(message, str(caught.exception))
        with self.assertRaisesRegex(ValueError, "blocks"):
            cautious.polar(np.ones((3, 2)), blocks=2)

    def test_names_and_fields(self):
        self.assertIn("cautious", cautious.decay_names())
        for recipe in cautious.recipe_names():
            line = " ".join([recipe,
                             *(f"{field.name}={field.value}" for field in cautious.fields(recipe) if field.value != [])])
            self.assertEqual(cautious.fields(line), cautious.fields(recipe))
            self.assertTrue(all(field.valid and field.help for field in cautious.fields(recipe)))


if __name__ == "__main__":
    unittest.main()
