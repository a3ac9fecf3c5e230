"""`cautious replay` from end to end against numpy: every optimizer, decay, coupling, type and option."""
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import replay_numpy
import trace_file
from trace_file import Bf16

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
OPTIMIZERS = ["sgd", "sgdm", "adam", "adamw", "adamc", "lion", "lion-k"]
DECAYS = ["none", "decoupled", "cautious", "opposed", "gradient", "random", "shuffled", "layerwise", "selective", "anchored"]
KS = [{"k": "l1"}, {"k": "l2"}, {"k": "lp", "p": 3}, {"k": "huber", "e": 0.05}, {"k": "relativistic", "e": 0.05},
      {"k": "threshold", "e": 0.05}, {"k": "topk", "fraction": 0.3}]
POLAR_SHAPES = [(7, 5), (5, 7), (4, 3, 3, 2), (12, 12), (1, 6), (6, 1)]
POLAR_SCHEDULES = [*sorted(replay_numpy.SCHEDULES), "exact", "custom"]
STEEP = {"polar-express": 6e-5, "cans": 6e-4}  # what rounding does to u in f32 where steps multiply errors; elsewhere 2e-5


class Replay(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def trace(self, shape=(7, 9), steps=12, dtype=np.float64, seed=1):
        rng = np.random.default_rng(seed)
        return rng.standard_normal(shape).astype(dtype), rng.standard_normal((steps, *shape)).astype(dtype)

    def run_program(self, tensors, out="out", **options):
        source, target = self.folder / "trace.safetensors", self.folder / f"{out}.safetensors"
        trace_file.write(source, tensors)
        words = [f"--{name}" if value is True else f"--{name}={value}" for name, value in options.items()]
        done = subprocess.run([PROGRAM, "replay", source, "--out", target, *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.done = done
        tensors, self.metadata = trace_file.read(target)
        return tensors

    def assert_close(self, ours, theirs, what, f32=None):
        """1e-9 in f64; a few ULP in f32, of a weight of at least 1/4 or of the largest moment, unless `f32` says how near."""
        self.assertEqual(set(ours), set(theirs), what)
        for name in ours:
            a, b = ours[name], theirs[name]
            self.assertEqual(a.shape, b.shape, f"{what}: {name}")
            if name.startswith("ratio"):
                np.testing.assert_array_equal(a, b, f"{what}: {name}")
            elif a.dtype == np.float64:
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=f"{what}: {name}")
            elif f32 is not None:
                np.testing.assert_allclose(a, b, rtol=0, atol=f32 * np.abs(b).max(initial=1), err_msg=f"{what}: {name}")
            else:
                scale = np.maximum(np.abs(b), 0.25 if name in ("x", "trajectory") else np.abs(b).max(initial=0))
                worst = (np.abs(a.astype(np.float64) - b) / np.spacing(scale.astype(np.float32))).max(initial=0)
                self.assertLessEqual(worst, 4, f"{what}: {name} is {worst} ULP away")

    def compare(self, x, g, lr, what, anchor=None, f32=None, **options):
        tensors = {"x": x, "g": g, "lr": np.asarray(lr, np.float64)}
        if anchor is not None:
            tensors["x0"] = anchor
        ours = self.run_program(tensors, trajectory=True, **options)
        if options.get("decay") == "random":
            options["density"] = np.full(len(g), options.get("density", 0.5))
        x, g, anchor = (array if array is None else array.astype(np.float64) for array in (x, g, anchor))
        self.assert_close(ours, replay_numpy.replay(x, g, lr, x0=anchor, **options), what, f32)

    def test_every_optimizer_and_decay(self):
        lr = 0.05 * 0.87 ** np.arange(12)  # no sums of these cancel, so that no sign hangs on a rounding
        for dtype, optimizer, decay in itertools.product((np.float64, np.float32), OPTIMIZERS, DECAYS):
            with self.subTest(dtype=dtype.__name__, optimizer=optimizer, decay=decay):
                x, g = self.trace(dtype=dtype)
                self.compare(x, g, lr, f"{optimizer} {decay}", optimizer=optimizer, decay=decay, weight_decay=0.3)

    def test_recipes_as_they_are(self):
        x, g = self.trace()
        for optimizer in OPTIMIZERS:
            self.compare(x, g, np.full(12, 0.01), optimizer, optimizer=optimizer)

    def test_fields(self):
        x, g = self.trace()
        lr = np.full(12, 0.01)
        self.compare(x, g, lr, "adamw", optimizer="adamw", beta1=0.5, beta2=0.75, eps=0.125, decay="cautious")
        self.compare(x, g, lr, "sgdm", optimizer="sgdm", beta=0)
        for k in KS:
            self.compare(x, g, lr, str(k), optimizer="lion-k", beta1=0.8, decay="cautious", **k)

    def compare_polar(self, shape, what, dtype=np.float64, f32=2e-5, **options):
        """lr is 1/2, so that u is seen with the digits of x."""
        x, g = self.trace(shape, 5, dtype, seed=3)
        self.compare(x, g, 0.5 * 0.87 ** np.arange(5), f"{what} {shape} {options}", f32=f32, **options)

    def test_muon_shapes_and_schedules(self):
        for schedule, shape in itertools.product(POLAR_SCHEDULES, POLAR_SHAPES):
            words = {"schedule": schedule}
            if schedule == "custom":
                words["coefficients"] = "3,-3.25,1.25,1.875,-1.25,0.375"
            with self.subTest(shape=shape, **words):
                self.compare_polar(shape, "muon", optimizer="muon", decay="cautious", **words)
        for schedule in POLAR_SCHEDULES[:-1]:
            self.compare_polar((6, 11), "f32", np.float32, STEEP.get(schedule, 2e-5), optimizer="muon", decay="cautious", schedule=schedule)

    def test_muon_fields(self):
        for dtype, decay in itertools.product((np.float64, np.float32), DECAYS):
            self.compare_polar((7, 9), decay, dtype=dtype, optimizer="muon", decay=decay, weight_decay=0.3)
        for scale, nesterov, shape in itertools.product(("none", "jordan", "rms"), ("on", "off"), ((8, 3), (3, 8))):
            self.compare_polar(shape, "muon", optimizer="muon", decay="cautious", scale=scale, nesterov=nesterov, beta=0.8)
        for schedule, coefficients in replay_numpy.SCHEDULES.items():  # later steps hide what earlier ones did
            for steps in range(1, len(coefficients) + 3):
                self.compare_polar((5, 9), "steps", optimizer="muon", decay="cautious", steps=steps, schedule=schedule)
        for blocks, shape in ((3, (12, 4)), (4, (4, 5, 3)), (2, (4, 5, 3)), (2, (2, 9))):
            self.compare_polar(shape, "mask", optimizer="muon", decay="cautious", mask="momentum", weight_decay=0.3)
            self.compare_polar(shape, "blocks", optimizer="muon", decay="cautious", blocks=blocks, scale="jordan")
        for eps in (1e-7, 50):
            for schedule in ("paper", "turbo", "polar-express"):
                self.compare_polar((5, 9), "eps", optimizer="muon", decay="cautious", eps=eps, schedule=schedule)
        for clip in ({"grad_clip": 2}, {"update_rms_clip": 0.1}):
            self.compare_polar((6, 9), "clips", optimizer="muon", decay="cautious", **clip)
        self.compare_polar((4, 0), "empty", optimizer="muon", decay="cautious")

    def test_nuclear(self):
        for dtype, schedule in itertools.product((np.float64, np.float32), ("paper", "polar-express-8", "exact", "turbo")):
            for shape in ((7, 5), (5, 7), (4, 3, 3, 2)):
                self.compare_polar(shape, "nuclear", dtype=dtype, optimizer="lion-k", k="nuclear", decay="cautious",
                                   schedule=schedule, scale="rms", beta1=0.8)

    def test_couplings_and_lr_max(self):
        x, g = self.trace()
        lr = np.linspace(0.001, 0.02, 12)
        for coupling in ("plain", "corrected", "independent", "squared"):
            self.compare(x, g, lr, coupling, optimizer="adamw", coupling=coupling, weight_decay=0.5)
            self.compare(x, g, lr, coupling, optimizer="adamw", coupling=coupling, lr_max=0.1)

    def test_anchor_seed_and_clips(self):
        x, g = self.trace()
        lr, x0 = np.full(12, 0.01), self.trace(seed=5)[0]
        for decay in ("anchored", "selective"):
            self.compare(x, g, lr, decay, anchor=x0, optimizer="adamw", decay=decay, weight_decay=1)
        self.compare(x, g, lr, "seed", optimizer="adamw", decay="random", density=0.25, seed=123456789)
        self.compare(x, g, lr, "grad_clip", optimizer="adamw", grad_clip=2)
        for optimizer in ("adamw", "lion", "sgdm"):
            self.compare(x, g, lr, "update_rms_clip", optimizer=optimizer, decay="cautious", update_rms_clip=0.3)

    def test_weight_decay_schedules(self):
        x, g = self.trace()
        at = np.arange(12) / 11
        curves = {"constant": at * 0 + 1, "linear": 0.25 + 0.75 * (1 - at), "cosine": 0.25 + 0.75 * (1 + np.cos(np.pi * at)) / 2,
                  "one-minus-sqrt": 0.25 + 0.75 * (1 - np.sqrt(at))}
        lr = np.full(12, 0.01)
        for name, factors in curves.items():
            words = {"wd_schedule": name} if name == "constant" else {"wd_schedule": name, "wd_final": 0.25}
            ours = self.run_program({"x": x, "g": g, "lr": lr}, optimizer="adamw", trajectory=True, **words)
            self.assert_close(ours, replay_numpy.replay(x, g, lr, optimizer="adamw", factors=factors), name)

    def test_density_trace(self):
        x, g = self.trace()
        tensors, lr = {"x": x, "g": g}, np.full(12, 0.01)
        first = self.run_program(tensors, out="cautious", optimizer="adamw", decay="cautious", lr=0.01)
        source = self.folder / "cautious.safetensors"
        ours = self.run_program(tensors, optimizer="adamw", decay="random", lr=0.01, density_trace=source, trajectory=True)
        self.assert_close(ours, replay_numpy.replay(x, g, lr, decay="random", density=first["ratio"]), "density")
        self.assertGreater(np.ptp(first["ratio"]), 0)

    def test_shapes(self):
        for shape, steps in (((), 5), ((1,), 3), ((0,), 4), ((3, 0, 2), 2), ((5,), 0), ((2, 1, 3, 4), 6), ((1031,), 3)):
            for dtype in (np.float64, np.float32):
                x, g = self.trace(shape, steps, dtype)
                self.compare(x, g, np.full(steps, 0.01), f"{shape}", optimizer="adamw", decay="cautious")

    def test_bf16_nearest(self):
        x, g = self.trace(dtype=np.float32, steps=20)
        x = Bf16.nearest(x)
        theirs = replay_numpy.replay(x.f32(), g, np.full(20, 0.05), decay="cautious", rounding=lambda y: Bf16.nearest(y).f32())
        ours = self.run_program({"x": x, "g": g}, optimizer="adamw", decay="cautious", lr=0.05)
        apart = np.abs(ours["x"].bits.astype(int) - Bf16.nearest(theirs["x"]).bits.astype(int))
        self.assertLessEqual(apart.max(), 1)
        self.assertEqual(np.count_nonzero(apart), 0)
        np.testing.assert_allclose(ours["m"], theirs["m"], rtol=1e-6, atol=1e-7)
        half = self.run_program({"x": x, "g": Bf16.nearest(g)}, optimizer="adamw", lr=0.05, moments="bf16")
        self.assertIsInstance(half["m"], Bf16)
        np.testing.assert_allclose(half["m"].f32(), theirs["m"], atol=0.05)

    def test_bf16_split_is_f32_in_two_halves(self):
        x, g = self.trace(dtype=np.float32, steps=30)
        x = Bf16.nearest(x)
        f32 = self.run_program({"x": x.f32(), "g": g}, optimizer="adamw", decay="cautious", lr=0.01)
        split = self.run_program({"x": x, "g": g}, optimizer="adamw", decay="cautious", lr=0.01, rounding="split")
        bits = (split["x"].bits.astype(np.int64) << 16) + split["low"].astype(np.int64)
        np.testing.assert_array_equal(bits, f32["x"].view(np.uint32).astype(np.int64))

    def test_bf16_stochastic(self):
        x, g = self.trace(dtype=np.float32, steps=1)
        x = Bf16.nearest(x)
        ours = self.run_program({"x": x, "g": g}, optimizer="sgd", lr=0.01, rounding="stochastic", seed=9)
        f32 = self.run_program({"x": x.f32(), "g": g}, optimizer="sgd", lr=0.01)["x"].view(np.uint32).ravel()
        chance = replay_numpy.rounding_bits(9, 1, f32.size)
        np.testing.assert_array_equal(ours["x"].bits.ravel(), (f32 + chance) >> np.uint32(16))

    def test_bits_do_not_depend_on_threads_and_runs(self):
        x, g = self.trace((300, 70), 3, np.float32)
        outs = set()
        for threads in (1, 2, 5, 1):
            self.run_program({"x": x, "g": g}, optimizer="adamw", decay="random", lr=0.01, threads=threads)
            outs.add((self.folder / "out.safetensors").read_bytes())
        self.assertEqual(len(outs), 1)

    def test_nonfinite(self):
        x, g = self.trace()
        g[4, 2, 3] = np.nan
        ours = self.run_program({"x": x, "g": g}, optimizer="adamw", lr=0.01)
        self.assertEqual(np.count_nonzero(np.isnan(ours["x"])), 1)
        self.assertIn("warning: 1 non-finite gradient entries, the first in step 5", self.done.stderr)
        skipped = self.run_program({"x": x, "g": g}, optimizer="adamw", lr=0.01, nonfinite="skip", quiet=True)
        without = self.run_program({"x": x, "g": np.delete(g, 4, axis=0)}, optimizer="adamw", lr=0.01)
        np.testing.assert_array_equal(skipped["x"], without["x"])
        self.assertEqual(np.flatnonzero(np.isnan(skipped["ratio"])).tolist(), [4])

    def test_words(self):
        x, g = self.trace()
        ours = self.run_program({"x": x, "g": g, "lr": np.full(12, 0.01)}, optimizer="adamw", decay="cautious", lr=1, json=True)
        self.assertEqual(self.metadata["recipe"], "adam beta1=0.9 beta2=0.999 eps=1e-08 decay=cautious mask=direction coupling=plain weight_decay=0.1")
        self.assertIn("note: the trace has learning rates; --lr was not used", self.done.stderr)
        (line,) = self.done.stdout.splitlines()
        report = json.loads(line)
        self.assertEqual((report["steps"], report["lr_max"], report["shape"]), (12, 0.01, [7, 9]))
        self.assertAlmostEqual(report["ratio"], ours["ratio"].mean())
        self.run_program({"x": x, "g": g}, optimizer="adamw", lr=1e-3, quiet=True)
        self.assertEqual((self.done.stdout, self.done.stderr), ("", ""))
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["out.safetensors", "trace.safetensors"])


if __name__ == "__main__":
    unittest.main()
