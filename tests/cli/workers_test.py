"""Several processes on one study, with a command of the user's as the training program: interrupted, killed, started at any time."""
import signal
import subprocess
import time
import unittest

from train_fixture import PROGRAM, Training, run

# Slow enough to be killed in, and a number that the run alone decides.
COMMAND = """echo $$ > "$CAUTIOUS_OUT/process"
sleep 0.1
awk "BEGIN { print 2 + $CAUTIOUS_SEED % 7 / 100 + ($CAUTIOUS_WEIGHT_DECAY - 0.5) ^ 2 / 10 }"
"""


class Workers(Training):
    def command(self, out):
        script = self.folder / "train.sh"
        script.write_text(COMMAND)
        return [PROGRAM, "compare", "--command", f"sh {script}", "--lr", "1e-3", "--lambdas", "0.2,1", "--seeds", "2",
                "--out", str(self.folder / out)]

    def start(self, out):
        return subprocess.Popen(self.command(out), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def log(self, out):
        path = self.folder / out / "log.txt"
        return [line.split(maxsplit=2)[1:] for line in path.read_text().splitlines()] if path.exists() else []

    def started_by(self, out):
        """How often each process has started a run."""
        return [int(who.rsplit(":", 1)[1]) for who, what in self.log(out) if what.endswith((": started", ": continued"))]

    def wait_until(self, condition):
        for _ in range(3000):
            if condition():
                return
            time.sleep(0.01)
        self.fail("it took too long")

    def tables(self, out):
        """All but the one of the runs, which has their seconds."""
        return {path.name: path.read_text() for path in (self.folder / out / "tables").glob("*.csv") if path.stem != "runs"}

    def test_the_table_and_the_verdict_of_one(self):
        alone = subprocess.run(self.command("alone"), capture_output=True, text=True, check=True).stdout
        workers = [self.start("shared") for _ in range(3)]
        self.wait_until(lambda: set(self.started_by("shared")) == {worker.pid for worker in workers})
        workers[0].kill()
        workers[1].send_signal(signal.SIGINT)
        for worker, code in zip(workers, (-signal.SIGKILL, 128 + signal.SIGINT, 0)):
            said, complaints = worker.communicate()
            self.assertEqual(worker.returncode, code, complaints)
        self.assertEqual(said.replace("shared", "alone"), alone)
        self.assertEqual(self.tables("shared"), self.tables("alone"))
        self.assertEqual(list((self.folder / "shared" / "claims").iterdir()), [])
        ended = [what for _, what in self.log("shared") if ": done" in what]
        self.assertEqual(len(ended), len({what.split(":")[0] for what in ended}), "no run has ended twice")

    def test_it_says_who_is_waited_for(self):
        """A claim of another machine, which is not heard of again: waited for, until the user ends it."""
        first = self.start("study")
        self.wait_until(lambda: self.started_by("study"))
        first.send_signal(signal.SIGTERM)
        self.assertEqual(first.wait(), 143)
        first.communicate()
        left = run("report", self.folder / "study")
        self.assertEqual(left.returncode, 0, left.stderr)
        folders = [line.split()[0] for line in run(*self.command("study")[1:], "--dry-run").stdout.splitlines()[1:-1]]
        for folder in folders:
            (self.folder / "study" / "claims" / folder).write_text("node7 4711 another 1 token 0\n")
        second = self.start("study")
        said = []
        while not said or "waiting: " not in said[-1]:
            said.append(second.stderr.readline())
        self.assertIn("waiting: node7:4711 makes ", said[-1])
        second.send_signal(signal.SIGINT)
        second.communicate()
        self.assertEqual(second.returncode, 130)

    def test_shards(self):
        plan = self.folder / "plan.toml"
        (self.folder / "words.txt").write_text("some words " * 2000)
        plan.write_text('title = "x"\nseeds = 4\n[base]\nmodel.preset = "nano-100k"\ndata.path = "words.txt"\n'
                        '[[arm]]\nname = "a"\n[[arm]]\nname = "b"\noptimizer.lr = 1\n')
        whole = run("study", plan, "--dry-run").stdout.splitlines()[1:-1]
        self.assertEqual(len(whole), 8)
        shards = [run("study", plan, "--dry-run", "--shard", f"{number}/3").stdout.splitlines() for number in (1, 2, 3)]
        self.assertEqual(sorted(line for shard in shards for line in shard[1:-1]), sorted(whole))
        self.assertEqual([shard[-1].split(",")[0] for shard in shards], ["3 runs", "3 runs", "2 runs"])
        for bad in ("0/4", "5/4", "a/b", "2", "1/", "/3", "1/0", "-1/2", "1/2/3", "1.5/2", "1/1000000"):
            self.refused(2, [f"shard is '{bad}'; valid: I/N with I from 1 to N"], "study", plan, "--dry-run", f"--shard={bad}")


if __name__ == "__main__":
    unittest.main()
