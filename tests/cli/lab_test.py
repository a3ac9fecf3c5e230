"""`cautious lab` from end to end: files, pages, what stdout says, problems from a file, and bad input that writes nothing."""
import csv
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import xml.dom.minidom

PROGRAM = sys.argv[1]


def run(*words):
    return subprocess.run([PROGRAM, "lab", *map(str, words)], capture_output=True, text=True, timeout=100)


def check_files(out, name):
    """The page, the JSON, and every figure and table that the JSON names."""
    document = json.loads((out / f"{name}.json").read_text())
    page = (out / "report.html").read_text()
    for section in document["sections"]:
        assert section["title"] and section["claims"] and section["command"].startswith("cautious lab "), section
        for claim in section["claims"]:
            assert claim["outcome"] in ("holds", "fails", "undecided", "noted") and claim["evidence"], claim
            if claim["outcome"] == "holds":
                assert claim["mutations"] or claim["unbreakable"], claim  # a short run need not notice each
        failing = [claim for claim in section["claims"] if claim["outcome"] == "fails"]
        assert not failing or any(claim["by_hand"] for claim in failing), failing
        for figure in section["figures"]:
            svg = xml.dom.minidom.parse(str(out / figure))
            assert svg.documentElement.tagName == "svg" and svg.getElementsByTagName("desc")[0].firstChild.data, figure
            text = (out / figure).read_text()
            assert "NaN" not in text and '"nan' not in text, figure
            assert f'id="figure-{figure.removesuffix(".svg")}"' in page, figure
        for table in section["tables"]:
            rows = list(csv.reader((out / f"{table['name']}.csv").open()))
            assert rows[0] == table["head"] and len(rows) == len(table["rows"]) + 1, table["name"]
    own = re.sub(r"<!-- uPlot.*?</script>", "", page, flags=re.S).replace("http://www.w3.org/2000/svg", "")
    assert "http:" not in own and "https:" not in own and "src=\"//" not in own
    return document


def check_toy(out):
    result = run("toy", "circle", "--out", out)
    assert result.returncode == 0, result
    assert str(out / "report.html") in result.stdout and "Pareto front" in result.stdout, result.stdout
    document = check_files(out, "toy")
    # The caption of Figure 3 is refuted from a start beyond the circle.
    assert document["fails"] == 1 and [s["title"] for s in document["sections"]][0] == "Circle"
    arms = [row[0] for row in document["sections"][0]["tables"][0]["rows"]]
    assert arms == ["Adam", "AdamW", "Adam + CWD"], arms

    rows = list(csv.DictReader((out / "toy_circle_paths.csv").open()))
    for arm in ("adam", "adamw", "adam_cwd"):
        path = [row for row in rows if row["arm"] == arm]
        assert 400 <= len(path) <= 700 and path[0]["step"] == "0" and path[-1]["step"] == "4000", (arm, len(path))
        assert (float(path[0]["x1"]), float(path[0]["x2"])) == (1.4, 5.2)
    end = rows[-1]  # Adam + CWD: on the circle, left of and below its middle
    x, y = float(end["x1"]), float(end["x2"])
    assert abs((x - 3) ** 2 + (y - 3) ** 2 - 1) < 1e-5 and x < 3 and y < 3

    first = {file.name: file.read_bytes() for file in out.iterdir()}
    assert run("toy", "circle", "--out", out).returncode == 0
    assert first == {file.name: file.read_bytes() for file in out.iterdir()}, "a second run gives other bytes"


def check_commands(folder):
    """The command under a section repeats it."""
    (folder / "sub").mkdir()
    (folder / "sub" / "mine.toml").write_text('f = "(x1 + x2 - 3)^2"\nstart = [2.0, 4.0]\n')
    for words in (["circle", "--steps", "60", "--arm", "lion decay=cautious"], ["sub/mine.toml", "--steps", "50"]):
        done = subprocess.run([PROGRAM, "lab", "toy", *words, "--out", "first"], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done
        first = (folder / "first" / "toy.json").read_text()
        command = shlex.split(json.loads(first)["sections"][0]["command"])
        assert command[-2:] == ["--out", "first"], command
        shutil.rmtree(folder / "first")
        again = subprocess.run([PROGRAM, *command[1:]], cwd=folder, capture_output=True, text=True)
        assert again.returncode == 0, (command, again)
        assert (folder / "first" / "toy.json").read_text() == first, command


def check_choices(folder):
    out = folder / "made" / "with parents"
    words = ["--start", "-3,-2.5", "--steps", 50, "--schedule", "constant"]
    assert run("toy", "circle", *words, "--out", out).returncode == 0
    document = check_files(out, "toy")
    assert document["sections"][0]["command"].startswith("cautious lab toy circle --schedule constant --start -3,-2.5")
    for words in (["--steps", "1"], ["--start", "100,-100", "--lr", "1"], ["--eps", "0"]):
        assert run("toy", "parabola", *words, "--out", out).returncode == 0, words
        check_files(out, "toy")
    arms = ["--arm", "lion decay=cautious", "--arm", "lion-k k=huber e=0.1 decay=cautious", "--arm", "muon decay=cautious scale=rms"]
    assert run("toy", "factorisation", *arms, "--out", out).returncode == 0
    assert [row[0] for row in check_files(out, "toy")["sections"][0]["tables"][0]["rows"]] == [
        "Lion + CWD", "Lion-K (huber) + CWD", "Muon + CWD"]

    problem = folder / "mine.toml"
    problem.write_text('title = "Hyperbola"\nf = "(x1*x2 - 4)^2"\nstart = [5.0, 0.5]\nview = [0.0, 6.0]\n')
    result = run("toy", problem, "--out", out)
    assert result.returncode == 0 and "Hyperbola" in result.stdout, result
    check_files(out, "toy")
    # Every point of a hyperbola trades one coordinate for the other: all of it is Pareto-optimal.
    assert all(row[5] == "yes" for row in check_files(out, "toy")["sections"][0]["tables"][0]["rows"] if row[0] != "AdamW")


def check_bad_input(folder):
    out = folder / "never"
    bad = folder / "bad.toml"
    bad.write_text('f = "x1 + * x2"\nstart = [1.0, 2.0]\n')
    wrong = folder / "wrong.toml"
    wrong.write_text('f = "x1 + x2"\nstart = [1.0, nan]\n')
    cases = {
        ("toy", "circel"): "did you mean 'circle'",
        ("toy", "--lr", "0"): "(0, 1]",
        ("toy", "--lr", "nan"): "lr",
        ("toy", "--beta2", "1"): "[0, 1)",
        ("toy", "--weight_decay", "x"): "weight_decay",
        ("toy", "circle", "--weight_decay", "0"): "no box",
        ("toy", "circle", "--lr", "1", "--weight_decay", "2"): "lr * weight_decay",
        ("toy", "--steps", "0"): "cautious: --steps is '0'; valid: [",
        ("dynamics", "--seed", "-1"): "cautious: --seed is '-1'; valid: [0, 1000000000]",
        ("toy", "--steps", "1e-3"): "steps",
        ("toy", "circle", "--start", "nan,1"): "start x1",
        ("toy", "circle", "--start", "1,,2"): "start x2 (character 3)",
        ("toy", "circle", "--start", "1"): "start",
        ("toy", "circle", "--start", "1,2,3"): "start",
        ("toy", "--start", "1,2"): "one problem",
        ("toy", "--schedule", "cosin"): "did you mean 'cosine'",
        ("toy", "--weight_decy", "1"): "weight_dec",
        ("toy", "circle", "--arm", "adamw beta3=1"): "character 7",
        ("toy", "circle", "--arm", "muon"): "problems of matrices: deep-linear, factorisation",
        ("toy", bad): "bad.toml:1:",
        ("toy", wrong): "wrong.toml:2:",
        ("toy", folder / "missing.toml"): "missing.toml",
        ("dynamics", "--trials", "0"): "trials",
        ("fixedpoint", "--steps", "10"): "[10000, 1000000]",
        ("toy", "deep-linear", "--steps", "1000000"): "steps * variables",
        ("bound", "--seeds", "1"): "seeds",
    }
    for words, expected in cases.items():
        result = run(*words, "--out", out)
        assert result.returncode == 2 and result.stdout == "", (words, result)
        assert result.stderr.count("\n") == 1 and expected in result.stderr, (words, result.stderr)
        assert not out.exists(), words
    assert run("toy").returncode == 2
    file = folder / "file"
    file.write_text("mine")
    result = run("toy", "circle", "--out", file)
    assert result.returncode == 2 and "is not a directory; give --out another" in result.stderr, result
    assert file.read_text() == "mine"


def check_small_runs(folder):
    for name, words in {"dynamics": ["--trials", 1], "fixedpoint": ["--steps", 10000], "bound": ["--seeds", 4]}.items():
        result = run(name, *words, "--out", folder / name)
        assert result.returncode == 0, result
        assert len(check_files(folder / name, name)["sections"]) >= 1


with tempfile.TemporaryDirectory() as name:
    root = pathlib.Path(name)
    check_toy(root / "toy")
    check_choices(root)
    check_commands(root / "made")
    check_bad_input(root)
    check_small_runs(root)
print("ok")
