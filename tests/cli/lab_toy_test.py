"""`cautious lab toy` from end to end: the three files, what stdout says, and bad input that writes nothing."""
import csv
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.dom.minidom

PROGRAM = sys.argv[1]
ARMS = ["adam", "adamw", "adam_cwd"]


def run(*words):
    return subprocess.run([PROGRAM, "lab", "toy", *map(str, words)], capture_output=True, text=True, timeout=30)


def words_of(svg):
    return [node.firstChild.data for node in svg.getElementsByTagName("text") if node.firstChild]


def check_default(out):
    result = run("--out", out)
    assert result.returncode == 0 and result.stderr == "", result
    assert str(out / "toy.svg") in result.stdout and "Pareto front" in result.stdout

    svg = xml.dom.minidom.parse(str(out / "toy.svg"))
    root = svg.documentElement
    assert root.tagName == "svg" and root.getAttribute("viewBox") and root.getAttribute("role") == "img"
    assert svg.getElementsByTagName("title")[0].firstChild.data
    assert "parabola: Adam" in svg.getElementsByTagName("desc")[0].firstChild.data
    assert "prefers-color-scheme:dark" in svg.getElementsByTagName("style")[0].firstChild.data
    clips = [node.getAttribute("id") for node in svg.getElementsByTagName("clipPath")]
    assert clips == ["clip-circle", "clip-parabola"], clips
    words = words_of(svg)
    assert "Circle" in words and "Parabola" in words
    for name in ("Adam", "AdamW", "Adam + CWD"):
        assert words.count(name) == 4, (name, words)  # a label and a row of the table per panel
    assert "nan" not in (out / "toy.svg").read_text() and "inf" not in " ".join(words)

    document = json.loads((out / "toy.json").read_text())
    assert [study["objective"] for study in document["studies"]] == ["circle", "parabola"]
    for study in document["studies"]:
        adam, adamw, cwd = study["runs"]
        assert [r["arm"] for r in study["runs"]] == ARMS and len(study["verdict"]) == 3
        assert adam["to_manifold"] < 1e-6 < adam["to_front"]
        assert adamw["in_box"] and adamw["to_manifold"] > 0.4
        assert cwd["to_manifold"] < 1e-6 and cwd["to_front"] < 1e-6

    rows = list(csv.DictReader((out / "toy.csv").open()))
    for study in document["studies"]:
        for arm in study["runs"]:
            path = [row for row in rows if (row["objective"], row["arm"]) == (study["objective"], arm["arm"])]
            assert 400 <= len(path) <= 700
            assert [float(path[0]["x"]), float(path[0]["y"])] == study["start"] and path[0]["step"] == "0"
            assert [float(path[-1]["x"]), float(path[-1]["y"])] == arm["end"] and int(path[-1]["step"]) == document["steps"]

    first = {file.name: file.read_bytes() for file in out.iterdir()}
    assert sorted(first) == ["toy.csv", "toy.json", "toy.svg"]
    assert run("--out", out).returncode == 0
    assert first == {file.name: file.read_bytes() for file in out.iterdir()}, "a second run gives other bytes"


def check_choices(folder):
    out = folder / "made" / "with parents"
    result = run("circle", "--start", "-3,-2.5", "--steps", 50, "--schedule", "constant", "--out", out)
    assert result.returncode == 0 and "parabola" not in result.stdout, result
    xml.dom.minidom.parse(str(out / "toy.svg"))
    for words in (["--weight_decay", "0"], ["--steps", "1"], ["--start", "100,-100", "--lr", "1"], ["--eps", "0"]):
        result = run(*words, "--out", out)
        assert result.returncode == 0, result
        xml.dom.minidom.parse(str(out / "toy.svg"))
        json.loads((out / "toy.json").read_text())


def check_bad_input(folder):
    out = folder / "never"
    cases = {
        ("circel",): "did you mean 'circle'",
        ("--lr", "0"): "(0, 1]",
        ("--lr", "-1"): "lr",
        ("--lr", "nan"): "lr",
        ("--beta2", "1"): "[0, 1)",
        ("--weight_decay", "x"): "weight_decay",
        ("--lr", "1", "--weight_decay", "2"): "lr * weight_decay",
        ("--steps", "0"): "steps",
        ("--steps", "1e3"): "steps",
        ("--start", "nan,1"): "start x",
        ("--start", "1"): "start",
        ("--start", "1,2,3"): "start",
        ("--schedule", "cosin"): "did you mean 'cosine'",
        ("--weight_decy", "1"): "weight_dec",
    }
    for words, expected in cases.items():
        result = run(*words, "--out", out)
        assert result.returncode == 2 and result.stdout == "", (words, result)
        assert result.stderr.count("\n") == 1 and expected in result.stderr, (words, result.stderr)
        assert not out.exists(), words
    assert run().returncode == 2
    file = folder / "file"
    file.write_text("mine")
    result = run("--out", file)
    assert result.returncode == 1 and result.stderr.count("\n") == 1 and file.read_text() == "mine", result


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    check_default(folder / "toy")
    check_choices(folder)
    check_bad_input(folder)
print("ok")
