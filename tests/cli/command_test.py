"""`cautious compare --command`: a study of a training program of the user's, here a script of a few lines."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
# Decay helps, most at 0.2; masks need 2.5 times as much.
TRAIN = """
import os, random, sys, time
lam = float(os.environ["CAUTIOUS_WEIGHT_DECAY"]) / (1 if os.environ["CAUTIOUS_DECAY"] == "decoupled" else 2.5)
seed = int(os.environ["CAUTIOUS_SEED"])
open("calls", "a").write(os.environ["CAUTIOUS_OUT"] + "\\n")
if os.path.exists("slow"): time.sleep(60)
noise = random.Random(os.environ["CAUTIOUS_RECIPE"] + str(seed)).gauss(0, 0.0002)
print("some words", file=sys.stderr)
print(2 + random.Random(seed).gauss(0, 0.02) + noise - (0 if lam == 0 else 0.1 if lam == 0.2 else 0.05))
"""
COMMAND = ["--command", f"{sys.executable} train.py", "--lr", "1e-3", "--lambdas", "0.05,0.2,1", "--seeds", "3"]


class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "train.py").write_text(TRAIN)

    def run_program(self, *words):
        return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, cwd=self.folder)

    def calls(self):
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def refused(self, text, *words):
        done = self.run_program(*words)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertRegex(done.stderr, f"^cautious: .*{text}.*\n$")
        self.assertEqual(self.calls(), [])

    def test_from_runs_to_report(self):
        done = self.run_program("compare", *COMMAND, "--out", "study", "--objective.unit=nats")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Weight decay helps here: plain (weight_decay=0.2) has a lower loss than none", done.stdout)
        self.assertIn("practically equal, within 0.005 nats", done.stdout)
        count = len(self.calls())
        self.assertEqual(len(set(self.calls())), count)
        again = self.run_program("compare", *COMMAND, "--out", "study", "--objective.unit=nats")
        self.assertEqual(again.stdout, done.stdout)
        self.assertEqual(len(self.calls()), count)
        report = self.folder / "study/report.html"
        page = report.read_bytes()
        report.unlink()
        self.assertEqual(self.run_program("report", "study").returncode, 0)
        self.assertEqual(report.read_bytes(), page)
        shutil.copytree(self.folder / "study", self.folder / "copy")
        done = self.run_program("report", "study", "copy", "--out", "all")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "all/report.html\n", ""))
        page = (self.folder / "all/report.html").read_text()
        self.assertIn("plain - none: -0.1", page)
        self.assertIn("in the mean of 2 studies", page)
        for words, text in ((["study", "copy"], "--out is missing"), (["study", "--out", "all"], "--out is for several studies"),
                            (["study", "all", "--out", "more"], "'all' has no tables/contrasts.csv: it is not a study, or its "
                             "report was not written; to write it: cautious report all")):
            done = self.run_program("report", *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn(text, done.stderr)
        self.assertFalse((self.folder / "more").exists())
        done = self.run_program("study", "study/plan.toml", "--out", "study")
        self.assertEqual(done.returncode, 2)
        self.assertIn("task is 'external', so a program of yours makes the runs", done.stderr)

    def test_a_failing_command_says_so(self):
        (self.folder / "train.py").write_text("raise ValueError('mine')")
        done = self.run_program("compare", *COMMAND, "--out", "study")
        self.assertEqual(done.returncode, 1)
        self.assertIn("ValueError: mine; to try again: cautious compare --optimizer adamw --command ", done.stderr.splitlines()[-1])
        listed = self.run_program("runs", "study").stdout.splitlines()[1:]
        self.assertEqual({line.split()[1] for line in listed}, {"failed"})

    def test_interrupted_it_continues(self):
        (self.folder / "slow").write_text("")
        process = subprocess.Popen([PROGRAM, "compare", *COMMAND, "--out", "study"], cwd=self.folder, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        while not self.calls():
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        said = process.communicate()[1]
        self.assertEqual(process.returncode, 130, said)
        self.assertIn("interrupted; to continue: cautious compare --optimizer adamw --command ", said)
        (self.folder / "slow").unlink()
        self.assertEqual(self.run_program("compare", *COMMAND, "--out", "study").returncode, 0)
        self.assertEqual(len(self.calls()), len(set(self.calls())) + 1)

    def test_dry_run(self):
        done = self.run_program("compare", *COMMAND, "--dry-run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^run\n(?s:.*)opposed: \d runs at the point that the tuning seeds choose\n(?s:.*)29 runs; .*\n$")
        self.assertEqual(os.listdir(self.folder), ["train.py"])

    def test_out_is_neither_a_file_nor_a_run(self):
        (self.folder / "one").mkdir()
        (self.folder / "one/config.toml").write_text("")
        for more in ([], ["--dry-run"]):
            self.refused("--out: 'train.py' is a file; give a directory", "compare", *COMMAND, "--out", "train.py", *more)
            self.refused("--out: 'one' is a run, not a study; choose another directory", "compare", *COMMAND, "--out", "one", *more)
        self.assertEqual(os.listdir(self.folder / "one"), ["config.toml"])

    def test_refused(self):
        self.refused("--data is for runs of cautious train", "compare", *COMMAND, "--data", "gcide")
        self.refused("--preset is for runs of cautious train", "compare", *COMMAND, "--preset", "nano-1m")
        self.refused("--steps is for runs of cautious train", "compare", *COMMAND, "--steps", "5")
        self.refused("--command is empty", "compare", "--command", "", *COMMAND[2:])
        self.refused("lr is missing", "compare", "--command", "x", "--lambdas", "1")
        self.refused("lambdas is missing", "compare", "--command", "x", "--lr", "1")
        self.refused("optimizer.decay cannot be set: every arm has its own", "compare", *COMMAND, "--optimizer.decay=cautious")
        self.refused("no key named 'train.batch_size'", "compare", *COMMAND, "--train.batch_size=8")
        self.refused("objective.target", "compare", *COMMAND, "--objective.target=-1")


if __name__ == "__main__":
    unittest.main()
