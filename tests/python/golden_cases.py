"""The golden vectors (tests/golden/README.md) as NumPy arrays: what test_golden.py runs through both optimizers."""
import json
import pathlib

import numpy as np

ALL = json.loads((pathlib.Path(__file__).resolve().parent.parent / "golden/golden.json").read_text())
TYPES = {"f32": np.float32, "f64": np.float64, "bf16": np.uint16}


def row(text, dtype):
    """A row of hexadecimal floats; bf16 as the 16 bits."""
    numbers = np.array([float.fromhex(each) for each in text.split()])
    if dtype == "bf16":
        return (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return numbers.astype(TYPES[dtype])


def widened(array):
    return (array.astype(np.uint32) << 16).view(np.float32) if array.dtype == np.uint16 else array


def difference(ours, expected, ulp):
    """None if they agree: the same numbers with the signs of zeros, any NaN for a NaN, or at most `ulp` units of the
    largest."""
    a, b = widened(ours), widened(expected)
    if ulp:
        unit = np.spacing(np.abs(b).max()) * (2**16 if expected.dtype == np.uint16 else 1)
        same = (a == b) | (np.abs(a - b) <= ulp * unit) | (np.isnan(a) & np.isnan(b))
    else:
        same = ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))
    return None if same.all() else f"{a[~same][0]!r} instead of {b[~same][0]!r} at {np.flatnonzero(~same)[0]}"


class Case:
    def __init__(self, data):
        self.data, self.name, self.dtype = data, data["name"], data["dtype"]
        self.gradient = data.get("gradient", self.dtype)
        own = ("mask", "coupling", "weight_decay", "density")
        self.fields = {name: data[name] for name in own if name in data} | data["fields"]
        words = [data["rule"], f"decay={data['decay']}", *(f"{name}={value}" for name, value in self.fields.items())]
        self.recipe = " ".join(words)
        given = ALL["inputs"][data["input"]]
        self.x = row(given["x"], self.dtype)
        self.g = [None if text is None else row(text, self.gradient) for text in given["g"]]
        self.anchor = row(ALL["inputs"][data["anchor"]]["x"], self.dtype) if "anchor" in data else None
        self.lr, self.lr_max = data["lr"], max(data["lr"])
        self.factors = data.get("decay_factor", [1.0] * len(self.lr))
        options = ("seed", "grad_clip", "update_rms_clip", "nonfinite", "rounding")
        self.options = {name: data[name] for name in options if name in data}
        if data.get("moments") == "bf16":
            self.options["moments"] = "bf16"

    def check_step(self, test, step, x, report):
        test.assertIsNone(difference(x, row(self.data["expected"][step], self.dtype), self.data["ulp"]), f"step {step + 1}")
        test.assertEqual((report.total.decayed, report.total.active), (self.data["decayed"][step], self.data["active"][step]))
        test.assertEqual(report.total.nonfinite, self.data.get("bad", [0] * 99)[step])
        test.assertEqual(report.skipped, self.data.get("skipped", [False] * 99)[step])

    def check_state(self, test, state):
        for piece in ("m", "v", "low"):
            if piece not in self.data:
                continue
            if piece == "low":
                test.assertEqual(state[piece].tolist(), [int(each) for each in self.data[piece].split()])
            else:
                dtype = {"float32": "f32", "float64": "f64", "uint16": "bf16"}[state[piece].dtype.name]
                test.assertIsNone(difference(state[piece], row(self.data[piece], dtype), self.data["ulp"]), piece)


CASES = [Case(data) for data in ALL["cases"]]
