"""cautious.replay against the program: every recipe under every decay, types, roundings and couplings, the same bytes."""
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import cautious

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import trace_file
from trace_file import Bf16

PROGRAM = os.environ["CAUTIOUS_PROGRAM"]
SPECIAL = {"muon": {"scale": "jordan", "nesterov": "on"}, "lion-k": {"k": "l2"}}
STEPS = 6


class Replays(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        rng = np.random.default_rng(1)
        self.x, self.g = rng.standard_normal((7, 9)), rng.standard_normal((STEPS, 7, 9))
        self.x0 = rng.standard_normal((7, 9))

    def theirs(self, tensors, optimizer, **options):
        source, target = self.folder / "trace.safetensors", self.folder / "out.safetensors"
        trace_file.write(source, tensors)
        words = [f"--{name}={value}" for name, value in options.items()]
        subprocess.run([PROGRAM, "replay", source, "--out", target, "--quiet", "--trajectory", f"--optimizer={optimizer}",
                        *words], check=True)
        return {name: value.bits if isinstance(value, Bf16) else value for name, value in trace_file.read(target)[0].items()}

    def compare(self, ours, theirs):
        found = {"x": ours.x, "ratio": ours.ratio, "ratio_strict": ours.ratio_strict, "trajectory": ours.trajectory,
                 **ours.state}
        self.assertEqual(set(found), set(theirs))
        for name, value in found.items():
            self.assertEqual(value.dtype, theirs[name].dtype, name)
            if name.startswith("ratio"):  # any NaN for a NaN
                np.testing.assert_array_equal(value, theirs[name], name)
            else:
                self.assertEqual(value.tobytes(), theirs[name].tobytes(), name)

    def test_every_recipe_and_decay(self):
        for optimizer, decay in itertools.product(cautious.recipe_names(), cautious.decay_names()):
            with self.subTest(optimizer=optimizer, decay=decay):
                fields = {"decay": decay, **SPECIAL.get(optimizer, {})} | ({} if decay == "none" else {"weight_decay": 0.3})
                recipe = " ".join([optimizer, *(f"{name}={value}" for name, value in fields.items())])
                for dtype in (np.float32, np.float64):
                    x, g = self.x.astype(dtype), self.g.astype(dtype)
                    ours = cautious.replay(x, g, recipe, lr=0.02, trajectory=True)
                    self.compare(ours, self.theirs({"x": x, "g": g}, optimizer, lr=0.02, **fields))

    def test_rates_anchor_and_seed(self):
        lr = np.linspace(0.001, 0.02, STEPS)
        tensors = {"x": self.x, "g": self.g, "lr": lr}
        for coupling in ("plain", "corrected", "independent", "squared"):
            ours = cautious.replay(self.x, self.g, f"adamw decay=cautious coupling={coupling}", lr=lr, trajectory=True)
            self.compare(ours, self.theirs(tensors, "adamw", decay="cautious", coupling=coupling))
        ours = cautious.replay(self.x, self.g, "adamw decay=anchored", lr=lr, x0=self.x0, trajectory=True)
        self.compare(ours, self.theirs({**tensors, "x0": self.x0}, "adamw", decay="anchored"))
        ours = cautious.replay(self.x, self.g, "adamw decay=random density=0.3", lr=lr, seed=12345678901234567890,
                               trajectory=True)
        self.compare(ours, self.theirs(tensors, "adamw", decay="random", density=0.3, seed=12345678901234567890))
        factors = 0.25 + 0.75 * (1 - np.arange(STEPS) / (STEPS - 1))
        ours = cautious.replay(self.x, self.g, "adamw decay=cautious", lr=lr, decay_factor=factors, trajectory=True)
        self.compare(ours, self.theirs(tensors, "adamw", decay="cautious", wd_schedule="linear", wd_final=0.25))

    def test_options_and_bf16(self):
        x, wide = Bf16.nearest(self.x), self.g.astype(np.float32)
        for rounding, moments, g in itertools.product(("nearest", "stochastic", "split"), ("f32", "bf16"),
                                                      (Bf16.nearest(wide), wide)):
            options = {"rounding": rounding, "moments": moments, "seed": 3}
            ours = cautious.replay(x.bits, getattr(g, "bits", g), "lion decay=cautious", lr=0.05, dtype="bf16", trajectory=True,
                                   **options)
            self.compare(ours, self.theirs({"x": x, "g": g}, "lion", lr=0.05, decay="cautious", **options))
        clipped = {"grad_clip": 2, "update_rms_clip": 0.3}
        ours = cautious.replay(self.x, self.g, "adamw", lr=0.05, trajectory=True, **clipped)
        self.compare(ours, self.theirs({"x": self.x, "g": self.g}, "adamw", lr=0.05, **clipped))

    def test_skipped_steps_have_no_ratio(self):
        self.g[2, 0, 0] = np.nan
        ours = cautious.replay(self.x, self.g, "adamw decay=cautious", lr=0.01, nonfinite="skip", trajectory=True)
        self.compare(ours, self.theirs({"x": self.x, "g": self.g}, "adamw", lr=0.01, decay="cautious", nonfinite="skip"))
        self.assertEqual(np.flatnonzero(np.isnan(ours.ratio)).tolist(), [2])

    def test_shapes(self):
        for shape, steps in (((), 5), ((1,), 3), ((0,), 4), ((3, 0, 2), 2), ((5,), 0)):
            x, g = np.ones(shape), np.ones((steps, *shape))
            ours = cautious.replay(x, g, "adamw decay=cautious", lr=0.01, trajectory=True)
            self.compare(ours, self.theirs({"x": x, "g": g}, "adamw", lr=0.01, decay="cautious"))

    def test_inputs_stay_and_bad_ones_are_refused(self):
        x, g = self.x.copy(), self.g.copy()
        cautious.replay(x, g, lr=0.1)
        self.assertTrue((x == self.x).all() and (g == self.g).all())
        for arguments, message in (((x, g[0]), "expected [T, 7, 9]"), ((x, g.astype(np.float32)), "'x' is f64"),
                                   (([1.0], g), "x is a list")):
            with self.assertRaises((TypeError, ValueError)) as caught:
                cautious.replay(*arguments, lr=0.1)
            self.assertIn(message, str(caught.exception))
        with self.assertRaisesRegex(ValueError, "lr has shape"):
            cautious.replay(x, g, lr=[0.1, 0.2])


if __name__ == "__main__":
    unittest.main()
