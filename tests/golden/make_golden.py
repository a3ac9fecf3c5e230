#!/usr/bin/env python3
"""Makes golden.json, the test vectors of docs/spec.md, from the model of the specification in model.py.

    make_golden.py [OUT]          standard library only; the same bytes on every machine

The product of every rule and every decay in every element type, and further cases for what the product leaves out. README.md
describes the format.
"""

import json
import math
import pathlib
import sys

import model

RULES = {
    "sgd": ("sgd", {}),
    "sgdm": ("sgdm", {"beta": 0.9}),
    "adam": ("adam", {"beta1": 0.9, "beta2": 0.95, "eps": 1e-8}),
    "lion": ("lion", {"beta1": 0.9, "beta2": 0.99}),
}
for k, extra in [("l1", {}), ("l2", {}), ("lp", {"p": 3.0}), ("huber", {"e": 0.05}), ("relativistic", {"e": 0.05}),
                 ("threshold", {"e": 0.01}), ("topk", {"fraction": 0.3})]:
    RULES["lion-k " + k] = ("lion-k", {"beta1": 0.9, "beta2": 0.99, "k": k, **extra})
DECAYS = ["none", "decoupled", "cautious", "opposed", "gradient", "random", "shuffled", "layerwise", "selective",
          "anchored"]
TYPES = [("f32", ""), ("f64", ""), ("bf16", "nearest"), ("bf16", "stochastic"), ("bf16", "split")]
LR = [0.01, 0.02, 0.015, 0.005]

# Chosen coordinates: the parameter and its gradient before it is varied from step to step.
EDGE = {
    "f32": [(0.0, 0.8), (-0.0, 0.0), (1e-30, -1e-30), (-1e-30, -1e-30), (1e-40, 1.0), (1.0, 1e-40), (1.0, 0.0), (-1.0, -0.0),
            (2.5, -3.0), (-2.5, 3.0), (1e30, 1.0), (-3.0, 1e25), (1e-3, 1e-25), (-0.7, 0.04), (1.7e-38, 1e-36), (0.3, 0.02)],
    "f64": [(0.0, 0.8), (-0.0, 0.0), (1e-200, -1e-200), (-1e-200, -1e-200), (1e-310, 1.0), (1.0, 1e-310), (1.0, 0.0),
            (-1.0, -0.0), (2.5, -3.0), (-2.5, 3.0), (1e200, 1.0), (-3.0, 1e180), (1e-3, 1e-170), (-0.7, 0.04),
            (3e-308, 1e-306), (0.3, 0.02)],
}
EDGE["bf16"] = EDGE["f32"]
TURNS = (1.0, -0.2, 0.5, -0.4)
BENDS = [(1.0, 1.0, -0.5, 2.0), (1.0, -0.75, 0.0, 1.5), (0.5, 1.25, -2.0, -1.0)]


def stored(dtype, a):
    if dtype == "f64":
        return a
    a = model.f32_of(model.f32_bits(a))  # keeps subnormal inputs: they are part of the test
    return model.bf16_nearest(a) if dtype == "bf16" else a


def f32_row(values):
    return [stored("f32", a) for a in values]


def edge(dtype):
    pairs = EDGE[dtype]
    gradients = [[stored(dtype, g * BENDS[i % 3][s]) for i, (_, g) in enumerate(pairs)] for s in range(4)]
    return {"x": [stored(dtype, x) for x, _ in pairs], "g": gradients}


def mild(dtype, n, steps, salt):
    """Numbers of ordinary size from the random bits of the specification itself."""
    def number(row, i):
        z = model.random_bits(model.mix64(salt), row * n + i)
        return stored(dtype, ((z >> 7) / 2**24 - 1) * (1.0 if z & 3 else 0.125))
    return {"x": [number(0, i) for i in range(n)], "g": [[number(s, i) for i in range(n)] for s in range(1, steps + 1)]}


def turning(dtype):
    """Gradients that turn back while the momentum still leads away from the start: where selective decay acts."""
    data = mild(dtype, 9, 4, 1)
    first = data["g"][0]
    data["g"] = [[stored(dtype, turn * a + 0.05 * b) for a, b in zip(first, noise)] for turn, noise in zip(TURNS, data["g"])]
    return data


def anchor(dtype):
    """An anchor that differs from the start and lies where the first gradient points."""
    data = turning(dtype)
    noise = mild(dtype, 9, 0, 2)["x"]
    return {"x": [stored(dtype, a + 0.4 * b + 0.2 * c) for a, b, c in zip(data["x"], data["g"][0], noise)], "g": []}


def sizes(dtype):
    """Enough coordinates for several bins of size, most of them of few; zeros, and sizes at the ends of the exponents."""
    data = mild(dtype, 230, 2, 5)
    data["x"] = [stored(dtype, x * 2.0 ** (-i % 7)) for i, x in enumerate(data["x"])]
    ends = [0.0, -0.0, 1e-40, 3e-38, -3e38] + ([1e-310, 1e-300, 1e300, 4e38, -1e-39] if dtype == "f64" else [])
    data["x"][:len(ends)] = [stored(dtype, x) for x in ends]
    return data


def nonfinite():
    inf, nan = math.inf, math.nan
    return {"x": [1.0, -1.0, 0.0, 2.0, -2.0, 0.5, 0.0],
            "g": [[0.5, nan, nan, inf, -inf, 0.25, inf], [0.5] * 7, [-0.5, 1.0, 1.0, 1.0, 1.0, -inf, 1.0]]}


def tiny():
    """Subnormal parameters and gradients beside numbers of nearly their size: that operands count as zeros shows."""
    g = f32_row([0.0, 2e-36, 2e-36, 5e-39, -5e-39])
    return {"x": f32_row([2e-38, 5e-39, -5e-39, -2e-38, 1.0]), "g": [g, g]}


def tied():
    """One step of 2^-8 away from a bf16 number between 1 and 2: halfway to the next."""
    return {"x": [1.0, 1.0078125, -1.0, -1.0078125, 1.0], "g": [[-1.0, -1.0, 1.0, 1.0, -0.99609375]]}


def whole_tensor(case):
    return (case["decay"] in ("shuffled", "layerwise", "selective") or case["fields"].get("k") in ("l2", "lp")
            or "grad_clip" in case or "update_rms_clip" in case)


def tolerance(case):
    """Units in the last place of a row's largest number: a sum over a tensor may be off by its last bits, which only f64 shows,
    and clipped gradients carry that into sums that cancel."""
    summed = whole_tensor(case) and (case["decay"] not in ("shuffled", "layerwise") or case["fields"].get("k") in ("l2", "lp"))
    if not summed or case["dtype"] != "f64":
        return 0
    return 16 if "grad_clip" in case else 4


def new_case(name, rule, decay, dtype, rounding="", **options):
    label, fields = RULES[rule]
    case = {"name": " ".join(filter(None, [name, rule, decay, dtype, rounding])), "rule": label, "fields": fields,
            "decay": decay, "coupling": "plain", "weight_decay": 1.0 if decay == "selective" else 0.1, "dtype": dtype, "lr": LR}
    if rounding:
        case["rounding"] = rounding
    if decay == "random":
        case["density"] = 0.5
    if decay in ("random", "shuffled") or rounding == "stochastic":
        case["seed"] = 7
    case.update(options)
    kind = "turning " if decay == "selective" else "mild " if whole_tensor(case) else "edge "
    case.setdefault("input", kind + dtype)
    return case


def product():
    return [new_case("", rule, decay, *kind) for rule in RULES for decay in DECAYS for kind in TYPES]


def couplings():
    factors, names = [1.0, 0.75, 0.5, 0.25], ("plain", "corrected", "independent", "squared")
    odd = {"lr": [0.31, 0.97, 0.71, 0.17], "weight_decay": 0.6}  # shows the order of the operations in double
    cases = [new_case(coupling, rule, "cautious", *kind, coupling=coupling, decay_factor=factors, **odd)
             for coupling in names for rule in ("sgdm", "adam") for kind in TYPES[:2]]
    cases += [new_case("factor", "adam", "selective", *kind, decay_factor=factors) for kind in TYPES[:2]]
    cases += [new_case("multiplier " + coupling, "sgdm", "cautious", "f64", coupling=coupling, lr_multiplier=0.3, **odd)
              for coupling in names]
    return cases + [new_case("off", "adam", decay, "f32", input="turning f32", decay_switch="off")
                    for decay in ("cautious", "anchored", "selective")]


def masks():
    """By the momentum: of every rule that shapes its direction, but for those that need a matrix."""
    cases = [new_case("by momentum", rule, "cautious", *kind, mask="momentum")
             for rule in RULES if rule.startswith("lion-k") for kind in TYPES]
    cases += [new_case("by momentum", "lion-k huber", decay, *kind, mask="momentum")
              for decay in ("opposed", "shuffled") for kind in TYPES[:2]]
    return cases + [new_case("by bf16 momentum", "lion-k huber", "cautious", "f32", mask="momentum", moments="bf16")]


def clips():
    cases = []
    for kind in TYPES[:3]:
        cases += [new_case("grad_clip", "sgdm", "cautious", *kind, grad_clip=0.75),
                  new_case("grad_clip loose", "sgdm", "gradient", *kind, grad_clip=1e3),
                  new_case("update_rms_clip", "adam", "cautious", *kind, update_rms_clip=0.5),
                  new_case("update_rms_clip", "lion-k relativistic", "decoupled", *kind, update_rms_clip=0.25),
                  new_case("both clips", "adam", "selective", *kind, grad_clip=0.5, update_rms_clip=0.25)]
    return cases


def anchors():
    return [new_case("anchor", "adam", decay, *kind, input="turning " + kind[0], anchor="anchor " + kind[0])
            for decay in ("anchored", "selective") for kind in TYPES]


def types():
    cases = [new_case("bf16 moments", rule, "cautious", *kind, moments="bf16") for rule in ("sgdm", "adam", "lion")
             for kind in (TYPES[0], *TYPES[2:])]
    return cases + [new_case("f32 gradient", "adam", "cautious", *kind, input="mixed", gradient="f32") for kind in TYPES[2:]]


def others():
    zero_eps = {"beta1": 0.9, "beta2": 0.95, "eps": 0.0}
    cases = [new_case("eps 0", "adam", "cautious", *kind, fields=zero_eps) for kind in TYPES[:2]]
    cases += [new_case("no decay", rule, "decoupled", "f32", weight_decay=0.0) for rule in ("sgd", "adam")]
    cases += [new_case("nonfinite", rule, decay, "f32", input="nonfinite", lr=LR[:3])
              for rule in ("sgd", "sgdm", "adam", "lion", "lion-k huber", "lion-k relativistic", "lion-k threshold")
              for decay in ("decoupled", "cautious")]
    cases += [new_case("nonfinite", "sgd", "cautious", "bf16", rounding, input="nonfinite", lr=LR[:3])
              for rounding in ("nearest", "stochastic", "split")]
    cases += [new_case("skip", "adam", "cautious", "f32", input="nonfinite", lr=LR[:3], nonfinite="skip")]
    cases += [new_case("tiny", "sgd", decay, "f32", input="tiny", lr=[0.01, 0.1], **extra)
              for decay, extra in (("cautious", {}), ("anchored", {"anchor": "tiny anchor"}))]
    cases += [new_case("ties", "sgd", "none", *kind, input="tied", lr=[2.0**-8]) for kind in (TYPES[2], TYPES[4])]
    cases += [new_case("at e", "lion-k threshold", "cautious", "f32", input="tied", lr=LR[:1],
                       fields={"beta1": 0.0, "beta2": 0.9, "k": "threshold", "e": 0.99609375})]
    cases += [new_case("pause", "adam", "random", *kind, input="pausing " + kind[0]) for kind in (TYPES[0], TYPES[3])]
    # Longer than a tile of 64, with an odd tail, so that loops with several bodies are seen.
    wide = [("adam", "cautious", TYPES[0]), ("lion", "random", TYPES[0]), ("sgdm", "gradient", TYPES[1]),
            ("adam", "cautious", TYPES[3]), ("sgdm", "anchored", TYPES[4])]
    cases += [new_case("sizes", "adam", "shuffled", *kind, input="sizes " + kind[0], lr=LR[:2]) for kind in TYPES[:3]]
    return cases + [new_case("wide", rule, decay, *kind, input="wide " + kind[0], lr=LR[:2]) for rule, decay, kind in wide]


def hexadecimal(a):
    """Short and exact, for C's strtod and Python's float.fromhex: 0x1.8p-3, 0, -0, inf, nan."""
    if a == 0 or not math.isfinite(a):
        return {"0.0": "0", "-0.0": "-0"}.get(str(a), str(a))
    digits, exponent = a.hex().split("p")
    return digits.rstrip("0").rstrip(".") + "p" + exponent


def row(values):
    return " ".join(map(hexadecimal, values))


def run(case, inputs):
    data = inputs[case["input"]]
    tensor = model.Tensor(case, data["x"], inputs[case["anchor"]]["x"] if "anchor" in case else data["x"])
    expected, counts = [], []
    factors = case.get("decay_factor", [1.0] * len(case["lr"]))
    for g, lr, factor in zip(data["g"], case["lr"], factors):
        counts.append(tensor.step(g, lr, max(case["lr"]), factor) if g else (0, 0, 0, False))
        expected.append(row(tensor.x))
    decayed, active, bad, skipped = map(list, zip(*counts))
    result = {**case, "ulp": tolerance(case), "expected": expected, "decayed": decayed, "active": active}
    if case["decay"] == "cautious" or case["name"].split()[0] not in model.RULES:  # in the product, decay does not change them
        result.update({name: row(values) for name, values in tensor.moments.items()})
    if any(bad):
        result.update({"bad": bad, "skipped": skipped})
    if case.get("rounding") == "split":
        result["low"] = " ".join(map(str, tensor.low))
    return result


def make_inputs():
    inputs = {"nonfinite": nonfinite(), "tied": tied(), "tiny": tiny()}
    inputs["tiny anchor"] = {"x": f32_row([1e-39, 0.0, 3e-38, -1e-39, 1e-39]), "g": []}
    for dtype in ("f32", "f64", "bf16"):
        inputs["edge " + dtype] = edge(dtype)
        inputs["mild " + dtype] = mild(dtype, 9, 4, 1)
        inputs["turning " + dtype] = turning(dtype)
        inputs["anchor " + dtype] = anchor(dtype)
        inputs["wide " + dtype] = mild(dtype, 67, 2, 3)
        inputs["sizes " + dtype] = sizes(dtype)
        inputs["pausing " + dtype] = mild(dtype, 9, 4, 4)
        inputs["pausing " + dtype]["g"][1] = None  # no gradient: the tensor is left out of the step
    inputs["mixed"] = {"x": inputs["mild bf16"]["x"], "g": inputs["mild f32"]["g"]}
    return inputs


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("golden.json")
    inputs = make_inputs()
    cases = [run(case, inputs) for case in product() + couplings() + masks() + clips() + anchors() + types() + others()]
    names = [case["name"] for case in cases]
    assert len(set(names)) == len(names), "two cases of one name"
    used = {case["input"] for case in cases} | {case["anchor"] for case in cases if "anchor" in case}
    rows = {name: {"x": row(data["x"]), "g": [row(g) if g else None for g in data["g"]]} for name, data in inputs.items()}
    lines = [json.dumps(name) + ":" + json.dumps(rows[name], separators=(",", ":")) for name in rows if name in used]
    text = '{"version":1,\n"inputs":{\n' + ",\n".join(lines) + '},\n"cases":[\n'
    text += ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "]}\n"
    out.write_text(text)


if __name__ == "__main__":
    main()
