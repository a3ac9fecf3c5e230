"""Training with bad input: one line, the right exit code, nothing lost."""
import json
import math
import os
import resource
import shutil
import signal
import struct
import subprocess
import unittest

from train_fixture import PROGRAM, Training, run


class Refusals(Training):
    def test_configuration(self):
        out = ["--out", self.folder / "x"]
        data = f"--data.path={self.corpus}"
        for given, meant in (("--lr=0.1", "optimizer.lr"), ("--train-steps=3", "train.steps"), ("--optimizer=adamw", "optimizer.name"),
                             ("--data=a.txt", "data.path"), ("--batch-size=2", "train.batch_size")):
            word = given.split("=")[0]
            self.refused(2, [f"no option named '{word}'; did you mean '--{meant}'? see 'cautious"], "train", data, given, *out)
        self.refused(2, ["optimizer.lrr", "did you mean", "optimizer.lr"], "train", data, "--optimizer.lrr=1", *out)
        self.refused(2, ["optimizer.lr", "'fast'"], "train", data, "--optimizer.lr=fast", *out)
        self.refused(2, ["--presett", "did you mean", "--preset"], "train", "--presett", "nano-1m")
        self.refused(2, ["data.path", "cautious data list"], "train", "--preset", "nano-100k", *out)
        self.refused(2, ["--out"], "train", data)
        self.refused(2, ["--train.steps has no value; write --train.steps=VALUE"], "train", data, *out, "--train.steps")
        self.refused(2, ["--train.steps has no value"], "train", *out, "--train.steps", data)
        self.refused(2, ["--preset has no value; write --preset=NAME; see 'cautious train --help'"], "train", "--preset", data)
        self.refused(2, ["--change has no value; write --change=KEY=VALUE,..."], "train", data, *out, "--resume", "--change")
        self.refused(2, ["--data has no value; write --data=FILE..."], "finetune", "stories15m", "--data")
        self.refused(2, ["--seed is '-1'; valid: [0, 2^64)"], "sample", "stories15m", "--prompt", "a", "--seed", -1)
        self.refused(3, ["'stories15' does not exist; did you mean 'stories15m'?"], "sample", "stories15", "--prompt", "a")
        self.refused(2, ["unexpected argument", "'corpus.txt'"], "train", "corpus.txt")
        self.refused(2, ["train.seq_len", "1000", "model.context"], "train", data, "--preset", "nano-100k", "--train.seq_len=1000", *out)
        bad = self.folder / "bad.toml"
        bad.write_text("[optimizer]\nlr = 1e-3\nbeta3 = 1\n")
        self.refused(2, ["bad.toml:3", "beta3", "did you mean"], "train", "--config", bad, *out)
        bad.write_text("[optimizer\n")
        self.refused(2, ["bad.toml"], "train", "--config", bad, *out)
        self.assertFalse((self.folder / "x").exists())

    def test_data(self):
        def refused(words, *more, code=3, path=None):
            command = self.arguments("x", *more)
            if path is not None:
                command = [f"--data.path={path}" if str(word).startswith("--data.path") else word for word in command]
            self.refused(code, words, *command)
            self.assertFalse((self.folder / "x").exists())

        file = self.folder / "data.txt"
        refused(["data.path", "no file", "data.txt"], path=file)
        refused([f"data.path: no file or folder '../w.txt' (looked in {os.getcwd()})"], path="../w.txt")
        refused(["gcidee", "did you mean", "gcide"], path="gcidee", code=2)
        file.write_text("")
        refused(["data.txt", "empty"], path=file)
        file.write_text("tiny")
        refused(["5 tokens", "data.val_fraction"], path=file)
        file.write_text("A short text that the last part of is shorter still. " * 4)
        refused(["the validation data, the last 5.16% of data.txt", "11 tokens", "33"], path=file)
        file.write_bytes(b"plain\xff\xfetext")
        refused(["data.txt", "UTF-8", "5"], path=file)
        shard = self.folder / "shard.bin"
        shard.write_bytes(struct.pack("<256i", 20240520, 1, 5000, *[0] * 253) + b"\0" * 4000)
        refused(["shard.bin", "5000"], path=shard)
        shard.write_bytes(struct.pack("<2000H", *[300] * 2000))
        refused(["300", "256"], path=shard)
        lines = self.folder / "lines.jsonl"
        lines.write_text('{"text": "one"}\n{"words": "two"}\n')
        refused(["lines.jsonl", "line 2", "text"], path=lines)
        refused(["lines.jsonl", "line 1: no field 'body'; fields: 'text'"], "--data.field=body", path=lines)
        tokens, made = self.folder / "made.tokens", self.folder / "made.json"
        file.write_text("A text of a few words that is long enough for merges. " * 40)
        for words in (["--train", "--vocab", 260, "--out", made], ["--tokenizer", made, "--out", tokens]):
            self.assertEqual(run("tokenize", file, "--quiet", *words).returncode, 0)
        refused(["made.tokens: made with another tokenizer", "than data.tokenizer (", "bytes); give the one that it was made with"],
                path=tokens)
        refused(["data.path is -", "cautious tokenize -"], path="-", code=2)
        refused(["data.weights is a list of 2, data.path one of 1"], "--data.weights=1,2", code=2)
        refused(["train.batch_size", "GiB", "grad_accum"], "--train.batch_size=1000000", "--train.seq_len=128", code=2)

    def test_changed_data_is_not_continued_with(self):
        out = self.train("run", "--checkpoint.every=20", steps=20)
        with open(self.corpus, "a") as file:
            file.write("one line more\n")
        self.refused(2, ["data.path", "changed", "--out"], "train", "--out", out, "--resume", "--change", "train.steps=40")

    def test_changes_are_declared_and_kept(self):
        out = self.train("run", "--checkpoint.every=20", steps=20)
        config = out / "config.toml"
        text = config.read_text()
        self.refused(2, ["--change train.steps=40"], "train", "--out", out, "--resume", "--train.steps=40")
        again = ("train", "--out", out, "--resume")
        for key in ("train.batch_size=16", "train.seed=4"):
            name = key.split("=")[0]
            self.refused(2, ["--resume cannot change", f"'{name}'", "train.steps", f"--init {out}"], *again, f"--{key}")
            self.refused(2, ["--change cannot change", f"'{name}'", "train.steps", f"--init {out}"], *again, "--change", key)
        self.refused(2, ["'train.stps'", "did you mean 'train.steps'?"], *again, "--change", "train.stps=40")
        self.refused(2, ["after step 12", "step 20 is done", "--change train.steps=20"], *again, "--change", "train.steps=12")
        self.refused(2, ["KEY=VALUE"], "train", "--out", out, "--resume", "--change", "steps")
        self.refused(2, ["--change is for --resume"], *self.arguments("other", "--change", "train.steps=40"))
        config.write_text(text.replace("seed = ", "seed = 1"))
        done = run(*again)
        self.assertIn("write that back; see", done.stderr)  # and no offer of what would be refused
        config.write_text(text.replace("lr = 0.005 ", "lr = 0.004 "))
        self.refused(2, ["config.toml", "optimizer.lr is 0.004", "step 20 was computed with 0.005"],
                     "train", "--out", out, "--resume", "--change", "train.steps=40")
        self.assertEqual(self.summary(out)["steps"], 20)
        done = run("train", "--out", out, "--resume", "--quiet", "--change", "train.tokens=5120,train.threads=2",
                   "--change", "optimizer.lr=0.004")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.summary(out)["steps"], 40)
        log = (out / "log.txt").read_text()
        for change in ("changed after step 20", "optimizer.lr from 0.005 to 0.004", "train.steps from 20 to not set",
                       "train.tokens from not set to 5120", "train.threads from 1 to 2"):
            self.assertIn(change, log)
        self.assertIn("tokens = 5120", config.read_text())
        self.assertEqual(run(*again, "--quiet").returncode, 0)  # it is the run's own now
        done = run(*again, "--quiet", "--change", "optimizer.lr=0.006")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("optimizer.lr from 0.004 to 0.006; no step is left", (out / "log.txt").read_text())
        self.assertEqual(run(*again, "--quiet").returncode, 0)

    def test_vocabulary_larger_than_the_models(self):
        tokenizer = self.folder / "tokenizer.json"
        done = run("tokenize", "--train", "--vocab", "512", self.corpus, "--out", tokenizer)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.refused(2, ["512", "256", "--model.vocab=512"],
                     *self.arguments("x", f"--data.tokenizer={tokenizer}", "--model.vocab=256"))
        out = self.train("bpe", f"--data.tokenizer={tokenizer}")
        row = self.rows(out)[-1]
        self.assertLess(row["val_bpb"], row["val_loss"] / 0.6931 / 1.5)  # a token is more than a byte

    def test_directories(self):
        out = self.train("run")
        before = self.weights(out)
        self.refused(2, ["not empty", "--resume"], *self.arguments("run"))
        self.assertEqual(before, self.weights(out))
        self.refused(1, ["/proc/run"], *self.arguments("/proc/run"))
        self.refused(1, ["--out: cannot make the directory", "corpus.txt/run': Not a directory"], *self.arguments("corpus.txt/run"))
        self.refused(1, ["--out: cannot make the directory", "File name too long"], *self.arguments("x" * 300))
        self.refused(2, ["no config.toml"], "train", "--out", self.folder / "nothing", "--resume")
        self.refused(2, ["optimizer.lr", "checkpoint.*"], "train", "--out", out, "--resume", "--optimizer.lr=1")
        self.refused(2, [f"{out}/config.toml; remove --preset"], "train", "--out", f"{out}/", "--resume", "--preset", "nano-1m")

    def test_checkpoint_of_another_architecture(self):
        out = self.train("run", "--checkpoint.every=20", steps=20)
        other = self.train("other", "--model.hidden=32", steps=20)
        shutil.copy(self.newest(other) / "model.safetensors", self.newest(out))
        more = ("--change", "train.steps=40")
        self.refused(3, ["model.safetensors: is not the file that was saved"], "train", "--out", out, "--resume", *more)
        state = self.newest(out) / "state.json"
        unsealed = {key: value for key, value in json.loads(state.read_text()).items() if key not in ("files", "sha256")}
        state.write_text(json.dumps(unsealed))  # of a version that had no seals
        self.refused(3, ["mlp", "another architecture"], "train", "--out", out, "--resume", *more)
        self.refused(3, ["mlp", "another architecture"], "eval", out, "--data", self.corpus)
        (self.newest(out) / "model.safetensors").write_bytes(b"nonsense")
        self.refused(3, ["model.safetensors"], "sample", out, "--prompt", "a")
        self.refused(3, ["model.safetensors"], "sample", self.folder, "--prompt", "a")

    def test_divergence_keeps_the_last_good_checkpoint(self):
        # lr wd = 3: every step takes three times the weights away from them.
        done = self.refused(4, ["diverged in step", "last good checkpoint", "optimizer.lr"],
                            *self.arguments("run", "--optimizer.lr=0.01", "--optimizer.weight_decay=300", "--schedule.kind=constant",
                                            "--checkpoint.every=1"))
        out = self.folder / "run"
        self.assertEqual(self.summary(out)["status"], "diverged")
        self.assertIsNone(self.summary(out)["objective"])
        self.assertIn(str(self.newest(out)), done.stderr)
        good = int(self.newest(out).name.removeprefix("step_"))
        self.assertGreater(good, 5)
        self.assertIn(f"diverged in step {good + 1}:", done.stderr)
        weights = self.newest(out).joinpath("model.safetensors").read_bytes()
        header = struct.unpack("<Q", weights[:8])[0]
        values = [value for value, in struct.iter_unpack("<f", weights[8 + header:])]
        start = self.rows(self.train("start", "--log.every=1", steps=1))[0]["rms_x"]
        self.assertLessEqual(math.sqrt(sum(value * value for value in values) / len(values)), 1000 * start)
        self.assertEqual(run("eval", out, "--data", self.corpus, "--tokens", "512").returncode, 0)

    def test_divergence_in_the_last_step(self):
        self.refused(4, ["diverged in step 1:", "no checkpoint"], *self.arguments("run", "--optimizer.lr=1e37", steps=1))
        summary = self.summary(self.folder / "run")
        self.assertEqual((summary["status"], summary["objective"], summary["best_val_loss"]), ("diverged", None, None))
        self.assertFalse((self.folder / "run" / "checkpoints").exists())

    def test_nothing_to_learn(self):
        self.corpus = self.folder / "empty.jsonl"
        self.corpus.write_text('{"text": ""}\n' * 3000)
        self.refused(3, ["step 1", "target", "empty documents"], *self.arguments("run"))

    def test_a_run_to_follow_is_looked_at_before_the_directory_is_made(self):
        self.refused(3, ["nowhere", "log.decay_trace"],
                     *self.arguments("x", "--optimizer.decay=random", f"--optimizer.density_from={self.folder / 'nowhere'}"))
        self.assertFalse((self.folder / "x").exists())

    def test_a_folder_with_the_name_of_the_byte_tokenizer(self):
        (self.folder / "bytes").mkdir()
        done = run(*self.arguments("run"), cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_damaged_checkpoint_beside_an_older_one(self):
        out = self.train("run", "--checkpoint.every=20")
        (self.newest(out) / "state.json").write_text("{")
        self.refused(3, ["state.json", "continue from step 20", "step_00000040"], "train", "--out", out, "--resume")
        self.newest(out).rename(self.folder / "damaged")
        self.assertEqual(run("train", "--out", out, "--resume").returncode, 0)

    def test_evaluation(self):
        out = self.train("run")
        self.refused(3, ["--data", "no file", "nothing.txt"], "eval", out, "--data", self.folder / "nothing.txt")
        shard = self.folder / "shard.bin"
        shard.write_bytes(struct.pack("<200H", *[300] * 200))
        self.refused(3, ["300", "the model's tokenizer", "256"], "eval", out, "--data", shard)
        self.refused(2, [f"RUN is missing, or --data has taken '{out}' too; write RUN first, as in: cautious eval {out} --data {shard}"],
                     "eval", "--data", shard, out, "--json")
        lines = self.folder / "lines.jsonl"
        lines.write_text("".join(json.dumps({"body": "a line of words to measure"}) + "\n" for _ in range(20)))
        self.refused(3, ["lines.jsonl", "no field 'text'"], "eval", out, "--data", lines)
        done = run("eval", out, "--data", lines, "--field", "body")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^perplexity +[\d.]+ per token$")
        self.assertRegex(done.stdout, r"(?m)^targets +\d+ of 539(; what is left between the windows counts with --stride)?$")

    def test_standard_output_that_cannot_be_written(self):
        out = self.train("run")
        for verb in (["eval", out, "--data", self.corpus, "--tokens", "1000"], ["train", "--dry-run"], ["train", "--print-config"],
                     ["sample", out, "--prompt", "a"], self.arguments("rows", "--json")):
            with self.subTest(verb=verb), open("/dev/full", "w") as full:
                done = subprocess.run([PROGRAM, *map(str, verb)], stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("cannot write to standard output", done.stderr.splitlines()[-1])

    def test_a_reader_of_the_rows_that_goes_away(self):
        whole, out = self.train("whole", steps=300), self.folder / "a run"
        process = subprocess.Popen([PROGRAM, *map(str, self.arguments("a run", "--json", "--log.every=1", steps=300))],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdout.readline()
        process.stdout.close()
        with process.stderr:
            words = process.stderr.read()
        self.assertEqual(process.wait(), 1)
        self.assertRegex(words.splitlines()[-1], f"step [0-9]+ is saved; to continue: cautious train --out '{out}' --resume")
        self.assertEqual(run("train", "--out", out, "--resume").returncode, 0)
        self.assertEqual(self.weights(whole), self.weights(out))

    def test_full_disk_during_a_checkpoint(self):
        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000))

        out = self.train("run", "--checkpoint.every=10", steps=20)
        more = ["train", "--out", out, "--resume", "--change", "train.steps=40"]
        before = self.weights(out)
        self.assertGreater(len(before[1]), 50000)
        self.refused(1, ["optimizer.safetensors", "File too large", "step_00000020", "--resume"], *more, preexec_fn=small_files)
        self.assertEqual(before, self.weights(out))
        self.assertEqual(sorted(path.name for path in (out / "checkpoints").iterdir()), ["step_00000010", "step_00000020"])
        self.assertEqual(run(*more).returncode, 0)


if __name__ == "__main__":
    unittest.main()
