"""Training from end to end on real text: it learns, its files are right, others read its checkpoints, stopping changes nothing."""
import csv
import json
import math
import pathlib
import random
import signal
import subprocess
import time
import unittest

from models_numpy import read_model
from train_fixture import PROGRAM, TINY, Training, run


class Runs(Training):
    def test_every_optimizer_learns(self):
        for name, lr in (("adamw", 1e-2), ("muon", 1e-2), ("lion", 3e-3), ("sgdm", 0.5), ("adamc", 1e-2), ("lion-k", 3e-3)):
            for decay in ("decoupled", "cautious"):
                with self.subTest(optimizer=name, decay=decay):
                    out = self.train(f"{name}-{decay}", f"--optimizer.name={name}", f"--optimizer.decay={decay}",
                                     f"--optimizer.lr={lr}", steps=150)
                    self.assertLess(self.summary(out)["objective"], math.log(256) - 1.5)

    def test_run_directory(self):
        out = self.train("run", "--optimizer.decay=cautious", "--eval.every=10", "--log.every=4", "--checkpoint.every=10",
                         "--checkpoint.keep=2", "--log.tensors=true")
        names = {path.name for path in out.iterdir()}
        self.assertLessEqual({"config.toml", "metrics.jsonl", "metrics.csv", "tb", "log.txt", "checkpoints", "summary.json"}, names)
        self.assertEqual([path.name for path in sorted((out / "checkpoints").iterdir())], ["step_00000030", "step_00000040"])
        self.assertEqual({path.name for path in self.newest(out).iterdir()},
                         {"model.safetensors", "optimizer.safetensors", "state.json", "config.json", "tokenizer.json",
                          "tokenizer_config.json"})
        model, tokenizer = (json.loads((self.newest(out) / name).read_text()) for name in ("config.json", "tokenizer_config.json"))
        self.assertEqual(tokenizer["model_max_length"], model["max_position_embeddings"])
        self.assertNotIn("eos_token", tokenizer)  # byte 0, which texts may contain
        summary, rows = self.summary(out), self.rows(out)
        self.assertEqual([row["step"] for row in rows], sorted({*range(4, 41, 4), *range(10, 41, 10)}))
        self.assertEqual((summary["status"], summary["steps"], summary["tokens"]), ("done", 40, 40 * 4 * 32))
        self.assertEqual(summary["objective"], rows[-1]["val_loss"])
        self.assertAlmostEqual(rows[-1]["val_bpb"], rows[-1]["val_loss"] / math.log(2), places=9)  # a byte a token
        self.assertEqual(summary["val_targets"], 2048)
        for row in rows:
            for part in ("attention/", "mlp/"):
                self.assertTrue(0 < row[part + "ratio_strict"] <= row[part + "ratio"] <= 1, row)
            self.assertEqual("val_loss" in row, row["step"] % 10 == 0)
            for part in ("embedding", "attention", "mlp", "vectors", "model.layers.0.mlp.up_proj.weight"):
                self.assertGreater(row[f"{part}/rms_x"], 0)
            self.assertEqual(row["vectors/decay_budget"], 0)
            self.assertAlmostEqual(row["decay_budget"], sum(row[f"{part}/decay_budget"] for part in ("embedding", "attention", "mlp")))
        with open(out / "metrics.csv", newline="") as file:
            table = list(csv.DictReader(file))
        self.assertEqual([float(row["loss"]) for row in table], [row["loss"] for row in rows])

    def test_the_best_checkpoint_is_kept(self):
        # A learning rate that goes up and up: the loss is best on the way.
        out = self.train("best", "--checkpoint.best=true", "--checkpoint.every=0", "--checkpoint.keep=1", "--eval.every=10",
                         "--optimizer.lr=3", "--schedule.warmup_ratio=1", "--optimizer.grad_clip=0", "--optimizer.name=sgdm", steps=120)
        losses = {row["step"]: row["val_loss"] for row in self.rows(out) if "val_loss" in row}
        best = min(losses, key=losses.get)
        self.assertNotIn(best, (10, 120), losses)
        self.assertEqual((out / "checkpoints" / "best").resolve().name, f"step_{best:08}")
        self.assertEqual({path.name for path in (out / "checkpoints").iterdir()}, {"best", f"step_{best:08}", "step_00000120"})
        self.assertEqual(self.summary(out)["best_step"], best)
        done = run("eval", out / "checkpoints" / "best", "--data", self.corpus, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_checkpoints_by_the_clock(self):
        out = self.train("clock", "--checkpoint.minutes=1e-9", "--checkpoint.every=0", "--checkpoint.keep=100", steps=5)
        self.assertEqual(len(list((out / "checkpoints").iterdir())), 5)
        out = self.train("patient", "--checkpoint.minutes=1000", "--checkpoint.every=0", "--checkpoint.keep=100", steps=5)
        self.assertEqual(len(list((out / "checkpoints").iterdir())), 1)

    def test_samples_do_not_change_the_run(self):
        asked = self.train("asked", "--log.prompt=The licence", "--log.prompt_tokens=20", "--eval.every=20", "--train.ema=0.9")
        silent = self.train("silent", "--eval.every=20", "--train.ema=0.9")
        self.assertEqual(self.weights(asked), self.weights(silent))
        samples = {row["step"]: row["sample"] for row in self.rows(asked) if "sample" in row}
        self.assertEqual(list(samples), [20, 40])
        self.assertTrue(all(0 < len(text.encode()) <= 60 for text in samples.values()), samples)
        self.assertFalse(any("sample" in row for row in self.rows(silent)))
        for out, shown in ((asked, True), (silent, False)):
            self.assertEqual(run("report", out).returncode, 0)
            self.assertEqual("What the model writes" in (out / "report.html").read_text(), shown)
        done = run("train", "--out", asked, "--resume", "--quiet")  # nothing left to do; its rows stay
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({row["step"]: row["sample"] for row in self.rows(asked) if "sample" in row}, samples)

    def test_same_seed_same_bytes_and_config_repeats_the_run(self):
        first = self.train("first", "--optimizer.name=muon", "--optimizer.decay=random")
        again = self.folder / "again"
        done = run("train", "--config", first / "config.toml", "--out", again)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.weights(first), self.weights(again))
        other = self.train("other", "--optimizer.name=muon", "--optimizer.decay=random", "--train.seed=1")
        self.assertNotEqual(self.weights(first)[0], self.weights(other)[0])

    def test_controls_repeat_density_and_amount_of_every_tensor_and_step(self):
        for name in ("adamw", "muon"):
            more = [f"--optimizer.name={name}", "--optimizer.lr=1e-2", "--log.decay_trace=true", "--optimizer.decay_vectors=true"]
            cwd = self.train(f"{name}-cwd", *more, "--optimizer.decay=cautious", "--optimizer.weight_decay=1",
                             "--schedule.decay_curve=linear")  # to zero in the last step
            budget = self.train(f"{name}-budget", *more, "--optimizer.decay=decoupled", f"--optimizer.budget_from={cwd}")
            random = self.train(f"{name}-random", *more, "--optimizer.decay=random", f"--optimizer.density_from={cwd}")
            names, wanted = self.decay_trace(cwd)
            controls = [self.decay_trace(run)[1] for run in (budget, random)]
            self.assertEqual([len(wanted), *map(len, controls)], [40] * 3)
            for i, tensor in enumerate(names):
                with self.subTest(optimizer=name, tensor=tensor):
                    density, amount = ([step[what][i] for step in wanted] for what in (0, 1))
                    self.assertGreater(sum(amount), 0)
                    self.assertEqual(amount[-1], 0)
                    for step in range(40):
                        self.assertAlmostEqual(controls[0][step][1][i], amount[step], delta=1e-5 * amount[step])
                        self.assertTrue(amount[step] > 0 or controls[1][step][1][i] == 0)
                    if "norm" in tensor:
                        continue  # coins of 16 coordinates say little; of 256 or more, over 40 steps, they even out
                    many = "embed" in tensor  # 4096
                    off = [sum(step[what][i] for step in controls[1]) for what in (0, 1)]
                    self.assertLess(abs(off[0] - sum(density)) / 40, 0.006 if many else 0.025)
                    self.assertLess(abs(off[1] / sum(amount) - 1), 0.02 if many else 0.08)

    def test_parts_of_a_batch_add_up(self):
        whole, parts = self.train("whole"), self.train("parts", "--train.grad_accum=4")
        self.assertAlmostEqual(self.summary(whole)["objective"], self.summary(parts)["objective"], places=4)

    def test_killed_at_random_steps_ends_with_the_same_bytes(self):
        for name in ("adamw", "muon"):
            with self.subTest(optimizer=name):
                more = [f"--optimizer.name={name}", "--optimizer.decay=cautious", "--checkpoint.every=7", "--log.every=3",
                        "--eval.every=25"]
                whole = self.train(f"{name}-whole", *more, steps=400)
                out, chance = self.folder / f"{name}-killed", random.Random(5)
                process = subprocess.Popen([PROGRAM, *map(str, self.arguments(f"{name}-killed", *more, steps=400))],
                                           stderr=subprocess.DEVNULL)
                kills = 0
                while kills < 4:
                    target = 7 + 90 * kills + chance.randrange(80)
                    while process.poll() is None and self.steps_seen(out) < target:
                        time.sleep(0.01)
                    if process.poll() is not None:
                        break
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    kills += 1
                    process = subprocess.Popen([PROGRAM, "train", "--out", out, "--resume"], stderr=subprocess.DEVNULL)
                self.assertEqual(process.wait(), 0)
                self.assertGreaterEqual(kills, 2)
                self.assertEqual(self.weights(whole), self.weights(out))
                clock = {"seconds", "time", "tokens_per_s"}
                same = [[{k: v for k, v in row.items() if k not in clock} for row in self.rows(run)] for run in (whole, out)]
                self.assertEqual(*same)

    def steps_seen(self, out):
        try:
            lines = (out / "metrics.jsonl").read_text().splitlines()
            return json.loads(lines[-1])["step"] if lines else 0
        except (OSError, ValueError):
            return 0

    def test_interrupt_saves_and_tells_how_to_continue(self):
        whole = self.train("whole", steps=1500)
        out = self.folder / "stopped"
        process = subprocess.Popen([PROGRAM, *map(str, self.arguments("stopped", steps=1500))], stderr=subprocess.PIPE, text=True)
        while self.steps_seen(out) < 20:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        _, words = process.communicate()
        self.assertEqual(process.returncode, 143)
        self.assertIn(f"cautious train --out {out} --resume", words.splitlines()[-1])
        self.assertEqual(self.summary(out)["status"], "stopped")
        done = run("train", "--out", out, "--resume")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.weights(whole), self.weights(out))
        self.assertEqual(run("train", "--out", out, "--resume").returncode, 0)  # nothing left to do

    def test_a_mixture_continues_with_the_same_bytes(self):
        other = self.folder / "set" / "train.jsonl"
        other.parent.mkdir()
        other.write_text("".join(json.dumps({"body": line}) + "\n" for line in self.corpus.read_text().splitlines()[:600] if line))
        (other.parent / "test.jsonl").write_text(json.dumps({"body": "held out " * 50}) + "\n")
        self.trained_on = f"{self.corpus},{other.parent}"
        more = ["--data.weights=3,1", "--data.field=body"]
        whole = self.train("whole", *more, steps=600)
        out = self.folder / "stopped"
        process = subprocess.Popen([PROGRAM, *map(str, self.arguments("stopped", *more, steps=600))], stderr=subprocess.PIPE,
                                   text=True)
        while self.steps_seen(out) < 20:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        _, words = process.communicate()
        self.assertEqual(process.returncode, 143)
        self.assertRegex(words, rf"mixture .*75% of {self.corpus} \(.* epochs of its \d+ tokens\), 25% of {other.parent} ")
        self.assertIn("then the test split, test.jsonl", words)
        self.assertEqual(run("train", "--out", out, "--resume").returncode, 0)
        self.assertEqual(self.weights(whole), self.weights(out))
        self.assertNotEqual(self.weights(whole), self.weights(self.train("plain", "--data.weights=1,1", "--data.field=body", steps=600)))

    def test_an_independent_model_reads_the_checkpoint(self):
        out = self.train("run", steps=100)
        held_out = self.folder / "held_out.txt"
        held_out.write_text(pathlib.Path("/usr/share/common-licenses/Artistic").read_text()[:128])
        done = run("eval", out, "--data", held_out, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        ours = json.loads(done.stdout)
        ids = list(held_out.read_bytes() + b"\0")  # a document's end is byte 0
        self.assertAlmostEqual(ours["loss"], read_model(self.newest(out)).loss(ids, 128), places=5)
        self.assertEqual(ours["targets"], 128)

    def test_the_end_of_a_document_is_no_byte_of_it(self):
        out, documents = self.train("run"), self.folder / "documents.jsonl"
        documents.write_text('{"text": "abc"}\n' * 40)
        done = run("eval", out, "--data", documents, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual((result["windows"], result["sequence"], result["targets"]), (1, 128, 96))  # b, c, end; never a
        self.assertAlmostEqual(result["bits_per_byte"], result["loss"] * 96 / math.log(2) / 64)

    def test_sampling(self):
        out = self.train("run", "--optimizer.lr=1e-2", steps=300)
        texts = [run("sample", out, "--prompt", "The licence", "--tokens", "60", "--seed", seed) for seed in "778"]
        for done in texts:
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(texts[0].stdout, texts[1].stdout)
        self.assertNotEqual(texts[0].stdout, texts[2].stdout)
        self.assertTrue(texts[0].stdout.startswith("The licence"))

    def test_rows_on_standard_output(self):
        done = run(*self.arguments("run", "--json", "--quiet", "--log.every=10"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([json.loads(line)["step"] for line in done.stdout.splitlines()], [10, 20, 30, 40])
        self.assertEqual([json.loads(line) for line in done.stdout.splitlines()], self.rows(self.folder / "run"))


if __name__ == "__main__":
    unittest.main()
