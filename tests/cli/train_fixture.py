"""What the end-to-end tests of training share: the program, a small real corpus, a tiny model."""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
MEMORY = "/dev/shm"  # a run waits for the disk at every checkpoint; here there is none to wait for
LICENCES = [pathlib.Path("/usr/share/common-licenses") / name for name in ("GPL-3", "LGPL-2.1", "Apache-2.0", "GPL-2", "MPL-2.0")]
# A byte model of 5,000 parameters: a step takes a millisecond.
TINY = ["--preset", "nano-100k", "--model.width=16", "--model.layers=1", "--model.heads=2", "--model.kv_heads=2",
        "--model.head_size=8", "--model.hidden=24", "--train.seq_len=32", "--train.batch_size=4", "--train.threads=1",
        "--eval.tokens=2048"]


def run(*command, **more):
    return subprocess.run([PROGRAM, *map(str, command)], capture_output=True, text=True, **more)


class Training(unittest.TestCase):
    trained_on = None  # data.path, if not the corpus

    def setUp(self):
        holder = tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None)
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.corpus = self.folder / "corpus.txt"
        self.corpus.write_text("".join(path.read_text() for path in LICENCES))

    def arguments(self, out, *more, steps=40):
        return ["train", *TINY, f"--data.path={self.trained_on or self.corpus}", f"--data.cache={self.folder / 'cache'}", f"--train.steps={steps}",
                "--out", self.folder / out, *more]

    def train(self, out, *more, steps=40):
        done = run(*self.arguments(out, "--quiet", *more, steps=steps))
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.folder / out

    def refused(self, code, words, *command, **more):
        done = run(*command, **more)
        self.assertEqual(done.returncode, code, done.stderr)
        last = done.stderr.splitlines()[-1]
        self.assertTrue(last.startswith("cautious: "), done.stderr)
        for word in words:
            self.assertIn(word, last)
        return done

    def summary(self, out):
        return json.loads((out / "summary.json").read_text())

    def rows(self, out):
        return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]

    def decay_trace(self, out):
        """Names of the tensors; per step, the density and the budget of each."""
        head, records = (out / "decay_trace.bin").read_bytes().split(b"\n", 1)
        names = json.loads(head)["tensors"]
        steps = list(struct.iter_unpack(f"<{len(names)}f{len(names)}d", records))
        return names, [(step[:len(names)], step[len(names):]) for step in steps]

    def newest(self, out):
        return sorted((out / "checkpoints").iterdir())[-1]

    def weights(self, out):
        folder = self.newest(out)
        return [(folder / name).read_bytes() for name in ("model.safetensors", "optimizer.safetensors")]
