"""Studies from end to end with the real cautious-train: matched runs, controls, caching, interruption, failures, what the user sees."""
import fcntl
import json
import os
import pty
import shutil
import signal
import struct
import subprocess
import termios
import time
import unittest

from train_fixture import PROGRAM, TINY, Training, run

PLAN = """title = "A small study"
seeds = [{seeds}]
[base]
{base}
[grid]
"optimizer.weight_decay" = [{grid}]
[[arm]]
name = "plain"
optimizer.decay = "decoupled"
[[arm]]
name = "cwd"
optimizer.decay = "cautious"
{more}
[[contrast]]
a = "cwd"
b = "plain"
"""
RANDOM = """[[arm]]
name = "random"
density_of = "cwd"
"""
CONTROLS = RANDOM + """[[arm]]
name = "budget"
budget_of = "cwd"
"""
CLOCK = {"seconds", "time", "tokens_per_s", "peak_rss_bytes"}


class Study(Training):
    def plan(self, name="plan.toml", seeds="0, 1", grid="1", more="", steps=40, **base):
        keys = dict(word.removeprefix("--").split("=") for word in TINY if "=" in word)
        keys |= {"model.preset": '"nano-100k"', "data.path": json.dumps(str(self.corpus)), "optimizer.lr": "1e-2",
                 "data.cache": json.dumps(str(self.folder / "cache")), "train.steps": steps, "log.every": 1, "log.tensorboard": "false"}
        keys |= {key.replace("__", "."): value for key, value in base.items()}
        keys.pop("train.threads")
        path = self.folder / name
        path.write_text(PLAN.format(seeds=seeds, grid=grid, more=more, base="\n".join(f"{k} = {v}" for k, v in keys.items())))
        return path

    def study(self, plan, out="study", *more, code=0):
        done = run("study", plan, "--out", self.folder / out, "--jobs", 2, *more)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def folders(self, out="study"):
        """Run directories by arm, point and seed: the folder's name without its hash."""
        return {path.name.rsplit("_", 1)[0]: path for path in (self.folder / out / "runs").iterdir()}

    def started(self, out="study"):
        lines = self.text(self.folder / out / "log.txt").splitlines()
        return [line for line in lines if line.endswith((": started", ": continued"))]

    def text(self, path):
        return path.read_text() if path.exists() else ""

    def results(self, run):
        return {key: value for key, value in self.summary(run).items() if key not in CLOCK}

    def all_results(self, out):
        return {name: (self.results(path), [{k: v for k, v in row.items() if k not in CLOCK} for row in self.rows(path)])
                for name, path in self.folders(out).items()}

    def densities(self, run):
        """Of every step, the fraction of each tensor that decays."""
        return [density for density, _ in self.decay_trace(run)[1]]


class Runs(Study):
    def test_matched_runs_and_their_controls(self):
        plan = self.plan(more=CONTROLS, log__decay_trace="true")
        done = self.study(plan)
        folders = self.folders()
        self.assertEqual(set(folders), {f"{arm}_weight_decay=1_seed={seed}" for arm in ("plain", "cwd", "random", "budget")
                                        for seed in (0, 1)})
        first = {name: self.rows(path)[0]["loss"] for name, path in folders.items()}
        for seed in (0, 1):
            self.assertEqual(len({loss for name, loss in first.items() if name.endswith(f"seed={seed}")}), 1, first)
        self.assertEqual(len(set(first.values())), 2, first)
        self.assertEqual(len({self.summary(path)["objective"] for path in folders.values()}), 8)
        for seed in (0, 1):
            cwd, random, budget = (folders[f"{arm}_weight_decay=1_seed={seed}"] for arm in ("cwd", "random", "budget"))
            self.assertIn(f'density_from = "{cwd}"', (random / "config.toml").read_text())
            self.assertIn(f'budget_from = "{cwd}"', (budget / "config.toml").read_text())
            wanted, got = self.densities(cwd), self.densities(random)
            self.assertEqual((len(wanted), len(got)), (40, 40))
            for step in range(40):
                for a, b in zip(wanted[step], got[step]):
                    self.assertLess(abs(a - b), 0.16)  # 256 coordinates or more: 5 standard deviations
            mean = [sum(map(sum, trace)) / sum(map(len, trace)) for trace in (wanted, got)]
            self.assertLess(abs(mean[0] - mean[1]), 6e-3)
            self.assertTrue(0.1 < mean[0] < 0.9)
            for a, b in zip(self.rows(cwd), self.rows(budget)):
                self.assertAlmostEqual(b["decay_budget"] / a["decay_budget"], 1, places=4)
        table = done.stdout.splitlines()
        self.assertEqual(table[0].split(), ["arm", "tuning", "n", "mean", "sd"])
        losses = [self.summary(folders[f"cwd_weight_decay=1_seed={seed}"])["objective"] for seed in (0, 1)]
        row = next(line for line in table if line.startswith("cwd weight_decay=1"))
        self.assertEqual(row.split()[2:], ["-", "2", f"{sum(losses) / 2:.4f}", f"{abs(losses[0] - losses[1]) / 2 ** 0.5:.4f}"])
        self.assertEqual(sum(": done, validation loss" in line for line in done.stderr.splitlines()), 8)

    def test_compare_tunes_first_and_judges_the_chosen_points(self):
        keys = [word for word in TINY if "=" in word and not word.startswith("--train.threads")]
        command = ["compare", "--preset", "nano-100k", "--data", self.corpus, f"--data.cache={self.folder / 'cache'}", *keys,
                   "--lambdas", "1", "--steps", 40, "--seeds", 2, "--tune-seeds", 1, "--out", self.folder / "study", "--jobs", 2]
        self.assertIn("13 runs, ", run(*command, "--dry-run").stdout.splitlines()[-1])
        done = run(*command)
        self.assertEqual(done.returncode, 0, done.stderr)
        made = len(list((self.folder / "study" / "runs").iterdir()))  # one less for each seed and arm that chose no decay
        listed = run(*command, "--dry-run").stdout.splitlines()
        self.assertEqual(listed[-1], f"{made} runs, {made} of them done")
        self.assertTrue(all(line.endswith("  done") for line in listed[1:-1]))
        self.assertEqual(len(listed), 1 + made + 1)
        folders, seed = self.folders(), "seed=100000"
        tuning = {name for name in folders if seed in name}
        self.assertEqual(tuning, {f"plain_weight_decay=0_{seed}", f"plain_weight_decay=1_{seed}", f"cwd_weight_decay=2.5_{seed}"})
        loss = {name: self.summary(folders[name])["val_loss"] for name in tuning}
        none = loss[f"plain_weight_decay=0_{seed}"]
        for arm, value in (("plain", "1"), ("cwd", "2.5")):  # at the lambda that was better, or with the runs of none
            chosen = loss[f"{arm}_weight_decay={value}_{seed}"] < none
            self.assertEqual({f"{arm}_weight_decay={value}_seed={n}" for n in (0, 1)} <= set(folders), chosen)
        self.assertIn("plain weight_decay=1", done.stdout)
        self.assertEqual(len(self.started()), len(folders))

    def test_a_decay_of_nothing_is_no_decay(self):
        runs = [self.train(name, f"--optimizer.decay={name}", "--optimizer.weight_decay=0") for name in ("none", "decoupled", "cautious")]
        self.assertEqual(len({self.summary(path)["objective"] for path in runs}), 1)

    def test_nothing_is_repeated_and_plans_grow(self):
        done = self.study(self.plan(seeds="0"), "study", "--quiet")
        self.assertEqual((done.stdout, done.stderr), ("", ""))
        self.assertEqual(len(self.started()), 2)
        before = self.all_results("study")
        self.study(self.plan(seeds="0"))
        self.assertEqual(len(self.started()), 2)
        self.study(self.plan(seeds="0", grid="0.5, 1"))
        self.assertEqual(len(self.started()), 4)
        after = self.all_results("study")
        self.assertEqual({name: after[name] for name in before}, before)
        other = self.plan("other.toml", seeds="0", optimizer__lr="2e-2")
        self.refused(2, ["study' is the study 'A small study'", "none of its 4 runs"], "study", other, "--out", self.folder / "study")

    def test_interrupted_and_continued_is_the_same(self):
        plan = self.plan(more=RANDOM, seeds="0", steps=1200, checkpoint__every="100", log__every="20")
        self.study(plan, "whole")
        out = self.folder / "parts"
        command = [PROGRAM, "study", plan, "--out", out, "--jobs", "2"]
        for number in (signal.SIGINT, signal.SIGKILL):
            process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            started = len(self.started("parts"))
            while process.poll() is None and not (len(self.started("parts")) > started and self.moving(out)):
                time.sleep(0.02)
            time.sleep(0.1)
            process.send_signal(number)
            words = process.communicate()[1]
            if number == signal.SIGKILL:
                self.wait_for_orphans(out)
                continue
            self.assertEqual(process.returncode, 128 + number)
            self.assertIn(f"cautious: interrupted; to continue: cautious study {plan} --out {out}", words.splitlines()[-1])
        self.study(plan, "parts")
        self.assertTrue(any(line.endswith(": continued") for line in self.started("parts")))
        whole, parts = self.all_results("whole"), self.all_results("parts")
        self.assertEqual(whole, parts)

    def moving(self, out):
        """Whether a run that has not ended has rows."""
        runs = (out / "runs").iterdir() if (out / "runs").exists() else []
        return any((path / "metrics.jsonl").exists() and '"done"' not in self.text(path / "summary.json") for path in runs)

    def wait_for_orphans(self, out):
        """A killed study's runs save and end; each holds its directory until then."""
        for path in (out / "runs").glob("*/.lock"):
            with open(path) as file:
                fcntl.flock(file, fcntl.LOCK_EX)

    def test_a_failed_run_does_not_stop_the_others(self):
        more = ('[[arm]]\nname = "bad"\ntrain.batch_size = 1000000\ntrain.seq_len = 128\n'  # more than the machine's memory
                '[[arm]]\nname = "wild"\noptimizer.lr = 1e6\n')
        done = self.study(self.plan(seeds="0", more=more, optimizer__grad_clip=0), code=1)
        self.assertIn("1 of 4 runs failed, the first: bad weight_decay=1 seed=0: failed: ", done.stderr.splitlines()[-1])
        self.assertIn("GiB", done.stderr.splitlines()[-1])
        folders = self.folders()
        self.assertIn("train.batch_size", (folders["bad_weight_decay=1_seed=0"] / "failure.txt").read_text())
        self.assertEqual(self.summary(folders["wild_weight_decay=1_seed=0"])["status"], "diverged")
        for arm in ("plain", "cwd"):
            self.assertEqual(self.summary(folders[f"{arm}_weight_decay=1_seed=0"])["status"], "done")
        started = len(self.started())
        self.study(self.plan(seeds="0", more=more, optimizer__grad_clip=0), code=1)
        self.assertEqual(len(self.started()), started + 1)  # the failed one alone

    def test_bad_data_is_said_once(self):
        plan = self.plan("lost.toml", more='[[arm]]\nname = "lost"\ndata.val_path = "/nowhere"\n')
        self.refused(3, ["data.val_path", "/nowhere"], "study", plan, "--out", self.folder / "lost")
        self.assertFalse((self.folder / "lost").exists())

    def test_one_plan_at_a_time(self):
        plan, other = self.plan(seeds="0", steps=100000), self.plan("other.toml", steps=100000)
        process = subprocess.Popen([PROGRAM, "study", plan, "--out", self.folder / "study"], stderr=subprocess.DEVNULL)
        while not self.started():
            time.sleep(0.02)
        self.refused(1, ["is in use by ", f":{process.pid} with another plan"], "study", other, "--out", self.folder / "study")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(), 143)

    def test_several_processes_make_what_one_makes(self):
        plan = self.plan(more=RANDOM, seeds="0, 1, 2", steps=600, checkpoint__every="100", log__every="20")
        whole = self.study(plan, "whole").stdout
        out = self.folder / "shared"
        workers = [subprocess.Popen([PROGRAM, "study", plan, "--out", out, "--jobs", "1"], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True) for _ in range(3)]
        while not self.moving(out):
            time.sleep(0.02)
        workers[0].kill()
        workers[0].communicate()
        for worker in workers[1:]:
            said, complaints = worker.communicate()
            self.assertEqual(worker.returncode, 0, complaints)
            self.assertEqual(said.replace(str(out), str(self.folder / "whole")), whole)
        self.assertEqual(self.all_results("shared"), self.all_results("whole"))
        self.assertEqual(list((out / "claims").iterdir()), [])

    def test_shards_make_what_one_makes(self):
        plan = self.plan(more=RANDOM, seeds="0, 1, 2")
        whole = self.study(plan, "whole").stdout
        for number in (1, 2):
            done = self.study(plan, f"shard{number}", "--shard", f"{number}/2")
            self.assertEqual(done.stdout, "")
            self.assertIn(f"shard {number}/2 has made all of its runs; copy the folders runs/ of all shards together, then: "
                          f"cautious study {plan} --out {self.folder / f'shard{number}'} --shard {number}/2", done.stderr)
        shutil.copytree(self.folder / "shard2" / "runs", self.folder / "shard1" / "runs", dirs_exist_ok=True)
        done = self.study(plan, "shard1", "--shard", "1/2")
        self.assertEqual(done.stdout.replace("shard1", "whole"), whole)
        self.assertEqual(len(self.started("shard1")) + len(self.started("shard2")), 9)
        self.assertEqual(self.all_results("shard1"), self.all_results("whole"))

    def test_dry_run_and_bad_words(self):
        plan = self.plan(more=CONTROLS, grid="0.5, 1")
        done = run("study", plan, "--dry-run")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 1 + 16 + 1)
        self.assertEqual(lines[1].split()[1], "40")
        self.assertIn(f"16 runs, {16 * 40 * 4 * 32 / 1000:.3g}k tokens, about 1 min", lines[-1])
        self.refused(2, ["--out is missing"], "study", plan)
        self.refused(2, ["jobs is 0; valid: [1, 4096]"], "study", plan, "--out", self.folder / "study", "--jobs", "0")
        self.refused(2, ["not empty and not a study"], "study", plan, "--out", self.folder)
        self.refused(2, ["not empty and not a study"], "study", plan, "--out", self.folder, "--dry-run")
        self.refused(2, ["other.toml:", "decya"], "study", self.plan("other.toml", optimizer__decya="1"), "--dry-run")
        self.assertFalse((self.folder / "study").exists())

    def test_table_on_a_terminal(self):
        plan, (ours, theirs) = self.plan(seeds="0"), pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 72, 0, 0))
        environment = {**os.environ, "TERM": "xterm"}
        process = subprocess.Popen([PROGRAM, "study", plan, "--out", self.folder / "study"], stderr=theirs, env=environment,
                                   stdout=subprocess.DEVNULL)
        os.close(theirs)
        seen = b""
        try:
            while part := os.read(ours, 65536):
                seen += part
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        self.assertEqual(process.wait(), 0)
        frames = seen.decode().split("\x1b[J")[:-1]
        self.assertGreater(len(frames), 2)
        self.assertTrue(all(frame.startswith("\x1b[3A") for frame in frames[1:]))
        lines = [line.removesuffix("\x1b[K").split("\r")[-1] for line in frames[-1].split("\r\n")[:-1]]
        self.assertEqual(len(lines), 3)
        self.assertTrue(all(len(line) < 72 for line in lines))
        self.assertRegex(lines[0], r"^plain weight_decay=1 seed=0 +1/1 +\[#{13}\] +\d\.\d{4}  done$")
        self.assertRegex(lines[2], r"^2/2 runs done +100% +0:\d\d < 0:00$")
        self.assertIn("running", seen.decode())


if __name__ == "__main__":
    unittest.main()
