"""cautious.reference against the golden vectors, exact arithmetic, the paper's pseudocode, torch.optim and the program.

    CAUTIOUS_PROGRAM=build/cautious /usr/bin/python3 -B tests/python/test_reference.py

Needs torch and numpy, and nothing of the compiled package. How it is used is in test_reference_use.py.
"""
import itertools
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import types
import unittest

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "python" / "cautious"
sys.modules["cautious"] = types.ModuleType("cautious")  # without its __init__, which may need what is compiled
sys.modules["cautious"].__path__ = [str(FOLDER)]
sys.path += [str(ROOT / "tests" / folder) for folder in ("golden", "cli")]
import trace_file  # noqa: E402
from cautious import reference, reference_bits, reference_recipe  # noqa: E402
from ieee import F32, F64  # noqa: E402

torch.set_num_threads(1)
TYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16}
DECAYS = list(reference_recipe.DECAYS)


def row(text, element):
    return torch.tensor([float(a) if a in ("nan", "inf", "-inf") else float.fromhex(a) for a in text.split()],
                        dtype=torch.float64).to(TYPES[element])


def same_bits(a, b):
    """Zeros with their sign, any NaN for a NaN."""
    return bool((((a == b) & (a.signbit() == b.signbit())) | (a.isnan() & b.isnan())).all()) and a.dtype == b.dtype


def randoms(shape, T=torch.float64, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(T)


class Golden(unittest.TestCase):
    """Every vector, by every step: x, moments, low halves, counts."""

    def compare(self, got, want, ulp, what):
        if ulp == 0:
            return self.assertTrue(same_bits(got, want), f"{what}: {got} is not {want}")
        unit = torch.finfo(want.dtype).eps * 2.0 ** math.floor(math.log2(float(want.abs().max())))
        self.assertLessEqual(float((got - want).abs().max()), ulp * unit, what)

    def run_case(self, case, inputs):
        element, given = case["dtype"], inputs[case["input"]]
        fields = {**case.get("fields", {}), "decay": case["decay"], **{k: case[k] for k in ("mask", "density") if k in case}}
        if case.get("decay_switch") == "off":
            fields = {**case.get("fields", {}), "decay": "none"}
        fields.update(coupling=case["coupling"], weight_decay=case["weight_decay"])
        recipe = " ".join([case["rule"], *(f"{name}={value}" for name, value in fields.items())])
        x, state = row(given["x"], element), {}
        if "anchor" in case:
            state["x0"] = row(inputs[case["anchor"]]["x"], element)
        scale = case.get("lr_multiplier", 1.0)
        for i, text in enumerate(given["g"]):
            g = row(text, case.get("gradient", element)) if text is not None else None
            counts = (0, 0)
            if g is not None and not (case.get("nonfinite") == "skip" and not g.isfinite().all()):
                size = g.double().square().sum().sqrt()
                report = reference.step(
                    recipe, x, g, state, lr=case["lr"][i] * scale, lr_max=max(case["lr"]) * scale, seed=case.get("seed", 0),
                    decay_factor=case.get("decay_factor", [1.0] * len(given["g"]))[i], tensor=reference_bits.hash_of("x"),
                    rounding=case.get("rounding", "nearest"), moments=case.get("moments", "f32"),
                    update_rms_clip=case.get("update_rms_clip", 0.0),
                    clip_scale=reference.limited(size, case["grad_clip"]) if case.get("grad_clip") else 1.0)
                counts = int(report["decayed"]), int(report["active"])
            self.compare(x, row(case["expected"][i], element), case["ulp"], f"{case['name']}, step {i + 1}")
            self.assertEqual(counts, (case["decayed"][i], case["active"][i]), case["name"])
        for name in {"m", "v"} & set(case):
            stored = "f64" if element == "f64" else case.get("moments", "f32")
            self.compare(state[name], row(case[name], stored), case["ulp"], f"{case['name']}: {name}")
        if "low" in case:
            self.assertEqual(state["low"].tolist(), [int(a) for a in case["low"].split()], case["name"])

    def test_every_vector(self):
        golden = json.loads((ROOT / "tests/golden/golden.json").read_text())
        self.assertGreater(len(golden["cases"]), 600)
        self.assertEqual({case["rule"] for case in golden["cases"]}, set(reference_recipe.RULES) - {"muon"})
        for case in golden["cases"]:
            with self.subTest(case["name"]):
                self.run_case(case, golden["inputs"])


class Arithmetic(unittest.TestCase):
    def test_every_operation_rounds_once(self):
        """Against rational numbers; many sums are made to end half way between two numbers, or near that."""
        source = random.Random(1)
        for oracle, T, digits, exponent in ((F32, torch.float32, 24, 45), (F64, torch.float64, 53, 500)):
            rows = []
            for _ in range(4000):
                a, b, c = (math.ldexp(source.choice((-1, 1)) * source.getrandbits(source.choice((3, digits // 2, digits))),
                                      source.randint(-exponent, exponent)) for _ in range(3))
                if source.random() < 0.6:  # c next to the product, or half a unit of a large c away
                    c = source.choice((-1, 1)) * a * b * source.choice((1, 2.0**(digits - 1), 2.0**digits, 2.0**(digits + 1)))
                if source.random() < 0.2:  # the product next to the smallest normal number, where it becomes a zero or does not
                    off = 2.0 ** -source.randint(digits // 3, digits // 2 + 3)  # by its square, relatively
                    a, b, c = source.choice((-1, 1)) * (1 + off) / 1024, oracle.smallest_normal * 1024 * (1 - off), 0.0
                rows.append([oracle.of(value) for value in (a, b, c)])
            a, b, c = (torch.tensor(column, dtype=torch.float64).to(T) for column in zip(*rows))
            for name, got, want in (
                    ("fma", reference.fma(a, b, c), [oracle.fma(*values) for values in rows]),
                    ("mul", reference.mul(a, b), [oracle.mul(*values[:2]) for values in rows]),
                    ("div", reference.div(a, b), [oracle.div(*values[:2]) if values[1] else math.nan for values in rows])):
                want = torch.tensor(want, dtype=torch.float64).to(T)
                good = ((got == want) & (got.signbit() == want.signbit())) | want.isnan()
                if T == torch.float64:  # the one value that docs/reference.md excepts
                    good |= (want == 0) & (got.abs() == oracle.smallest_normal)
                self.assertTrue(bool(good.all()), f"{name} {T}: {(~good).sum()}, first {rows[int((~good).int().argmax())]}")

    def test_a_product_that_underflows_keeps_its_sign(self):
        u, x = torch.tensor([-1e-30, 1e-30, 0.0, -1e-40, math.nan]), torch.full((5,), 1e-30)
        self.assertEqual(reference.step("sgd decay=cautious", x, u, {}, lr=0.1)["decayed"].item(), 4)

    def test_zero_over_zero_is_zero(self):
        for T in TYPES.values():
            x = torch.ones(3, dtype=T)
            reference.step("adam eps=0", x, torch.zeros(3, dtype=T), {}, lr=0.1)
            self.assertTrue(bool((x == 1).all()))


class Pseudocode(unittest.TestCase):
    """The algorithms of the paper's appendix B in numpy, as printed, 50 steps in f64."""

    def mine(self, rule, decay, x, gradients, lr, wd):
        b1, b2, m, v = (0.95, 0.98, 0.0, 0.0)
        for t, g in enumerate(gradients, 1):
            if rule == "sgdm":
                m = b1 * m + (1 - b1) * g
                u = m
            elif rule == "adamw":
                m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
                u = (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + 1e-8)
            elif rule == "lion":
                u = np.sign(b1 * m + (1 - b1) * g)
                m = b2 * m + (1 - b2) * g
            else:
                m = b1 * m + g
                u = m / np.linalg.norm(m)
                for _ in range(5):
                    a = u @ u.T
                    u = 3.4445 * u + (-4.7750 * a + 2.0315 * a @ a) @ u
            on = {"none": 0, "decoupled": 1, "cautious": u * x >= 0}[decay]
            x = x - lr * (u + wd * on * x)
        return x

    def test_fifty_steps(self):
        x, gradients = randoms((6, 9)).numpy(), randoms((50, 6, 9), seed=1).numpy()
        fields = {"sgdm": "beta=0.95", "muon": "beta=0.95"}
        for rule, decay in itertools.product(("sgdm", "adamw", "lion", "muon"), ("none", "decoupled", "cautious")):
            ours, state = torch.from_numpy(x.copy()), {}
            for g in gradients:
                reference.step(f"{rule} {fields.get(rule, 'beta1=0.95 beta2=0.98')} decay={decay} weight_decay=0.3", ours,
                               torch.from_numpy(g), state, lr=0.02)
            worst = np.abs(ours.numpy() - self.mine(rule, decay, x, gradients, 0.02, 0.3)).max()
            self.assertLess(worst, 1e-12, f"{rule} {decay}")

    def test_decoupled_is_torch_adamw(self):
        p = torch.nn.Parameter(randoms((5, 7)))
        x, state = p.detach().clone(), {}
        other = torch.optim.AdamW([p], lr=0.01, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
        for g in randoms((50, 5, 7), seed=2):
            p.grad = g.clone()
            other.step()
            reference.step("adamw beta2=0.95 weight_decay=0.1", x, g, state, lr=0.01)
        self.assertLess(float((p - x).abs().max()), 1e-12)


class Program(unittest.TestCase):
    """Whole trajectories of `cautious replay`: bits where the specification promises them."""

    ELEMENTWISE = ["sgd", "sgdm beta=0.8", "adam", "adamw beta2=0.95", "adamc", "lion", "lion-k k=l1", "lion-k k=huber e=0.05",
                   "lion-k k=relativistic e=0.05", "lion-k k=threshold e=0.05", "lion-k k=topk fraction=0.3"]
    WHOLE = ["lion-k k=l2", "lion-k k=lp p=3"]  # a sum over the tensor, in an order of its own
    MATRIX = ["muon schedule=jordan", "muon nesterov=on scale=jordan schedule=quintic", "muon schedule=turbo eps=0.5 scale=rms",
              "muon schedule=polar-express-8 steps=9", "muon schedule=exact blocks=3", "muon schedule=cans steps=2",
              "lion-k k=nuclear schedule=polar-express", "muon schedule=custom coefficients=3,-3.25,1.25,1.875,-1.25,0.375"]
    KINDS = [("f64", "nearest"), ("f32", "nearest"), ("bf16", "nearest"), ("bf16", "stochastic"), ("bf16", "split")]
    LR = 0.05 * 0.87 ** np.arange(6)

    @classmethod
    def setUpClass(cls):
        if "CAUTIOUS_PROGRAM" not in os.environ:
            raise RuntimeError("set CAUTIOUS_PROGRAM to the program cautious, as in CAUTIOUS_PROGRAM=build/cautious")
        cls.program = pathlib.Path(os.environ["CAUTIOUS_PROGRAM"]).resolve()

    def both(self, recipe, element, rounding, shape=(15, 20), seed=5, **options):
        """x after every step, the state and the ratios: the program's and ours."""
        x, g = randoms(shape, TYPES[element], 8), randoms((6, *shape), TYPES[element], 9)
        with tempfile.TemporaryDirectory() as folder:
            trace, out = pathlib.Path(folder, "trace"), pathlib.Path(folder, "out")
            stored = {name: trace_file.Bf16(a.view(torch.int16).numpy().view(np.uint16)) if element == "bf16" else a.numpy()
                      for name, a in (("x", x), ("g", g))}
            trace_file.write(trace, {**stored, "lr": self.LR})
            rule, *fields = f"{recipe} weight_decay=0.3".split()
            words = [f"--{word}" for word in (*fields, *(f"{name}={value}" for name, value in options.items()))]
            done = subprocess.run([self.program, "replay", trace, "--out", out, "--trajectory", "--optimizer", rule, "--seed",
                                   str(seed), "--rounding", rounding, "--quiet", *words], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            theirs, _ = trace_file.read(out)
        theirs = {name: torch.from_numpy(a.bits.view(np.int16).copy()).view(torch.bfloat16) if isinstance(a, trace_file.Bf16)
                  else torch.from_numpy(a.copy()) for name, a in theirs.items()}
        state, path, ratio = {}, [], []
        for i in range(6):
            report = reference.step(f"{recipe} weight_decay=0.3", x, g[i], state, lr=self.LR[i], lr_max=self.LR[0], seed=seed,
                                    tensor=reference_bits.hash_of("x"), rounding=rounding, **options)
            path.append(x.clone())
            ratio.append(report["decayed"].double() / report["count"])
        state.pop("x0", None), state.pop("step")
        ours = {**state, "trajectory": torch.stack(path), "ratio": torch.stack(ratio)}
        return {name: theirs[name] for name in ours}, ours

    def test_bits(self):
        for recipe, decay, (element, rounding) in itertools.product(self.ELEMENTWISE, DECAYS, self.KINDS):
            theirs, ours = self.both(f"{recipe} decay={decay}", element, rounding)
            for name in ours:
                if (decay, element) == ("selective", "f64"):  # hangs on norms
                    self.assertLess(float((ours[name] - theirs[name]).abs().max()), 1e-14, f"{recipe} {decay} {name}")
                else:
                    self.assertTrue(same_bits(ours[name], theirs[name]), f"{recipe} {decay} {element} {rounding} {name}")

    def close(self, recipe, kinds, f32):
        for element, rounding in kinds:
            theirs, ours = self.both(recipe, element, rounding)
            for name in set(ours) - {"low"}:
                distance = float((ours[name].double() - theirs[name].double()).abs().max())
                limit = {"f64": 1e-14, "f32": f32, "bf16": 2**-8 * float(theirs[name].abs().max())}[element]
                self.assertLessEqual(distance, 0 if name == "m" else limit, f"{recipe} {element} {name}")

    def test_sums_over_a_tensor(self):
        for recipe, decay in itertools.product(self.WHOLE, DECAYS):
            self.close(f"{recipe} decay={decay}", self.KINDS, 2**-22)

    def test_matrices(self):
        for recipe in self.MATRIX:
            for decay in ("cautious", "cautious mask=momentum", "none", "selective"):
                self.close(f"{recipe} decay={decay}", self.KINDS[:2], 2e-6)
        for decay in DECAYS:
            self.close(f"muon decay={decay}", self.KINDS[:2], 2e-6)

    def test_couplings_moments_and_clips(self):
        for coupling in ("plain", "corrected", "independent", "squared"):
            theirs, ours = self.both(f"adamw decay=cautious coupling={coupling}", "f32", "nearest")
            self.assertTrue(same_bits(ours["trajectory"], theirs["trajectory"]), coupling)
        for options in ({"moments": "bf16"}, {"update_rms_clip": 0.3}):
            theirs, ours = self.both("adamw decay=cautious", "f32", "nearest", **options)
            self.assertTrue(all(same_bits(ours[name], theirs[name]) for name in ("m", "v", "trajectory")), str(options))


if __name__ == "__main__":
    unittest.main()
