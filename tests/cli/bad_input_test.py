"""Bad input to the program: the exit code tells whose turn it is, exactly one line tells what to do, nothing is written."""
import json
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

import trace_file

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
USAGE, DATA, FAILURE = 2, 3, 1
X, G = np.ones((2, 3)), np.ones((4, 2, 3))
GOOD = {"x": X, "g": G}
ADAMW = ["--optimizer", "adamw", "--lr", "0.01"]
MUON = ["--optimizer", "muon", "--lr", "0.01"]


def safetensors(header, data=b"", length=None):
    text = header.encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def catches(process, number):
    """Whether the process has a handler for the signal."""
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return int(caught, 16) >> (number - 1) & 1


class BadInput(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.trace, self.out = self.folder / "trace.safetensors", self.folder / "out.safetensors"
        trace_file.write(self.trace, GOOD)

    def refused(self, code, words, command, cause=None):
        """Runs the program and returns its one line."""
        before = {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        done = subprocess.run([PROGRAM, *map(str, command)], capture_output=True, text=True, cwd=self.folder)
        what = f"{cause or command}: {done.stderr}"
        self.assertEqual(done.returncode, code, what)
        self.assertEqual(done.stdout, "", what)
        self.assertEqual(done.stderr.count("\n"), 1, what)
        self.assertTrue(done.stderr.startswith("cautious: "), what)
        for word in [words] if isinstance(words, str) else words:
            self.assertIn(word, done.stderr, what)
        after = {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        self.assertEqual(after, before, f"{what} something was written")
        return done.stderr

    def refused_replay(self, code, words, *options):
        command = ["replay", self.trace, "--out", self.out, *options]
        return self.refused(code, words, command)

    def test_words(self):
        see = "see 'cautious --help'"
        for words, command in (
                ([see, "choices: train, launch, finetune, sample, eval"], ["no-verb"]),
                ([see, "no verb named 'repaly'", "did you mean 'replay'?"], ["repaly"]),
                ([see, "unknown option '--versoin'", "'--version'"], ["--versoin"]),
                ([see, "unknown option '-x'"], ["-x"]),
                ("TRACE is required", ["replay"]),
                ("--out is required", ["replay", self.trace, *ADAMW]),
                ("--optimizer is required", ["replay", self.trace, "--out", self.out]),
                ("unexpected argument 'b'", ["replay", self.trace, "b", *ADAMW, "--out", self.out]),
                ("--lr has no value; write --lr=NUMBER", ["replay", self.trace, *ADAMW, "--lr"]),
                ("--decay has no value; write --decay=NAME; see 'cautious replay", ["replay", self.trace, "--decay", "--lr", 1]),
                ("--decay has no value", ["replay", self.trace, "--decay", "-h"]),
                ([see, "no verb named 'nope'; choices: train,"], ["help", "nope"]),
                ([see, "no verb named 'repaly'; did you mean 'replay'?"], ["repaly", "--help"]),
                (["no verb named 'stp'; did you mean 'step'?", "see 'cautious bench --help'"], ["help", "bench", "stp"])):
            self.refused(USAGE, words, command)

    def test_names_and_numbers(self):
        for words, *options in (
                (["no optimizer named 'adanw'", "did you mean 'adamw'?", "lion-k"], "--optimizer", "adanw", "--lr", 1),
                (["no optimizer named ''", "choices"], "--optimizer", "", "--lr", 1),
                (["--lr is '', not a number"], "--optimizer", "adamw", "--lr", ""),
                (["no decay named 'cautios'", "did you mean 'cautious'?", "layerwise"], *ADAMW, "--decay", "cautios"),
                (["no decay named 'a\\x0ab'"], *ADAMW, "--decay", "a\nb"),
                (["unknown option '--betta1'; did you mean '--beta1'? see 'cautious replay --help'"], *ADAMW, "--betta1", 0.9),
                (["--weight_decay is '-0.1'"], *ADAMW, "--weight-decay=-0.1"),
                (["--lr is given twice"], *ADAMW, "--lr", 1),
                (["--decay is empty", "see 'cautious replay --help'"], *ADAMW, "--decay="),
                (["no field of adam", "'beta'", "choices: beta1, beta2, eps"], *ADAMW, "--beta", 0.9),
                (["no field of adam", "'density'"], *ADAMW, "--density", 0.9),
                (["no coupling named 'corected'", "'corrected'"], *ADAMW, "--coupling", "corected"),
                (["no k of lion-k named 'l3'", "huber"], "--optimizer", "lion-k", "--lr", 1, "--k", "l3"),
                (["no weight-decay schedule named 'cosin'", "'cosine'"], *ADAMW, "--wd_schedule", "cosin"),
                (["no rounding named 'nearst'", "'nearest'"], *ADAMW, "--rounding", "nearst"),
                (["no nonfinite named 'ignore'", "propagate"], *ADAMW, "--nonfinite", "ignore"),
                (["no moments named 'f16'", "f32, bf16"], *ADAMW, "--moments", "f16"),
                (["--beta1 of adam is '1'", "[0, 1)"], *ADAMW, "--beta1", 1),
                (["--beta1 of adam is '-0.1'", "[0, 1)"], *ADAMW, "--beta1", -0.1),
                (["--lr is '-1'", "[0, inf)"], "--optimizer", "adamw", "--lr", -1),
                (["--lr is 'nan'"], "--optimizer", "adamw", "--lr", "nan"),
                (["--lr is 'inf'"], "--optimizer", "adamw", "--lr", "inf"),
                (["--lr is '1e-3x', not a number"], "--optimizer", "adamw", "--lr", "1e-3x"),
                (["--weight_decay is 'nan'", "[0, inf)"], *ADAMW, "--weight_decay", "nan"),
                (["--weight_decay is '-0.1'"], *ADAMW, "--weight_decay=-0.1"),
                (["--eps of adam is '-1'"], *ADAMW, "--eps", -1),
                (["--lr_max is '0'", "(0, inf)"], *ADAMW, "--lr_max", 0),
                (["--lr_max is 0.001", "0.01"], *ADAMW, "--lr_max", 0.001),
                (["mask=momentum", "lion-k, muon", "adam", "mask=direction"], *ADAMW, "--decay", "cautious", "--mask", "momentum"),
                (["--density of random is '2'", "[0, 1]"], *ADAMW, "--decay", "random", "--density", 2),
                (["--grad_clip is '-1'"], *ADAMW, "--grad_clip", -1),
                (["--update_rms_clip is 'nan'"], *ADAMW, "--update_rms_clip", "nan"),
                (["--seed is '1.5', not a whole number"], *ADAMW, "--seed", 1.5),
                (["--threads is '-1'"], *ADAMW, "--threads", -1),
                (["--wd_final is '-1'"], *ADAMW, "--wd_schedule", "linear", "--wd_final", -1)):
            self.refused_replay(USAGE, words, *options)

    def test_combinations(self):
        for words, *options in (
                (["no learning rate", "--lr"], "--optimizer", "adamw"),
                (["'adam' has no decay", "adamw, adamc", "--decay"], "--optimizer", "adam", "--lr", 1, "--weight_decay", 0.1),
                (["--wd_final has no effect"], *ADAMW, "--wd_final", 0.5),
                (["--density_trace belongs to the decay 'random'"], *ADAMW, "--density_trace", self.trace),
                (["both given"], *ADAMW, "--decay", "random", "--density", 1, "--density_trace", self.trace),
                (["--moments is 'bf16', but x is F64"], *ADAMW, "--moments", "bf16"),
                (["--rounding is 'split', but x is F64"], *ADAMW, "--rounding", "split")):
            self.refused_replay(USAGE, words, *options)

    def test_polar(self):
        nuclear = ["--optimizer", "lion-k", "--k", "nuclear", "--lr", "0.01"]
        for words, *options in (
                (["no schedule of the polar factor named 'papper'", "did you mean 'paper'?", "turbo"], "--schedule", "papper"),
                (["no scale of the polar factor named 'big'", "none, jordan, rms"], "--scale", "big"),
                (["coefficients are given", "schedule is 'paper'", "'custom'"], "--coefficients", "1,2,3"),
                (["coefficients has 0 numbers", "a,b,c"], "--schedule", "custom"),
                (["coefficients has 4 numbers", "a,b,c"], "--schedule", "custom", "--coefficients", "1,2,3,4"),
                (["coefficients of the polar factor is 'x'", "not a number"], "--schedule", "custom", "--coefficients", "1,x,3"),
                (["steps is 2", "schedule 'exact' has none"], "--schedule", "exact", "--steps", 2),
                (["steps of the polar factor is '-1'", "[0, 100]"], "--steps", -1),
                (["steps of the polar factor is '2.5', not a whole number"], "--steps", 2.5),
                (["blocks of the polar factor is '0'"], "--blocks", 0)):
            self.refused_replay(USAGE, words, *MUON, *options)
            self.refused_replay(USAGE, words, *nuclear, *options)
        self.refused_replay(USAGE, ["no nesterov of muon named 'yes'", "off, on"], *MUON, "--nesterov", "yes")
        self.refused_replay(USAGE, ["no field of adam", "'schedule'"], *ADAMW, "--schedule", "paper")
        for optimizer in (MUON, nuclear):
            for shape, words in (((3,), "'x' of shape [3] is no matrix"), ((), "'x' of shape [] is no matrix")):
                trace_file.write(self.trace, {"x": np.ones(shape), "g": np.ones((4, *shape))})
                self.refused_replay(USAGE, words, *optimizer)
            trace_file.write(self.trace, {"x": np.ones((3, 2)), "g": np.ones((4, 3, 2))})
            self.refused_replay(USAGE, ["'x' of shape [3, 2]", "2 blocks"], *optimizer, "--blocks", 2)

    def test_bench_step(self):
        for words, *options in (
                ("--sizes is 0", "--sizes", "0"), ("--threads", "--threads", "0"), ("--rounds", "--rounds", "0"),
                ("no optimizer in the benchmark named 'adam'", "--optimizers", "adam"),
                ("no scenario named 'norm'; did you mean 'norms'?", "--scenarios", "flat,norm"),
                ("no --pages named 'large'; choices: small, huge", "--pages", "large")):
            self.refused(USAGE, words, ["bench", "step", *options])

    def test_bench_step_speaks_json(self):
        names = ["flat", "1000x160", "norms", "bf16", "aliased", "denormal"]
        command = [PROGRAM, "bench", "step", "--scenarios", ",".join(names), "--sizes", "1000", "--optimizers", "adamw",
                   "--threads", "1", "--pages", "huge", "--rounds", "1", "--json"]
        rows = [json.loads(line) for line in subprocess.run(command, capture_output=True, check=True).stdout.splitlines()]
        self.assertEqual([row["scenario"] for row in rows if row["reference"] == "decoupled"], ["flat"] * 6)
        self.assertEqual([row["scenario"] for row in rows if row["reference"] == "flat" and row["scenario"] != "flat"],
                         ["1000x160", *names[1:]])
        self.assertEqual([row["norms"] for row in rows if row["scenario"] == "1000x160"], ["off", "on"])
        for row in rows:
            self.assertEqual((row["optimizer"], row["threads"], row["pages"]), ("adamw", 1, "huge"))
            self.assertEqual((row["n"], row["tensors"]) == (1000, 1), row["n"] != 160000)
            self.assertIn(row["limited_by"], ("traffic", "floor"))
            self.assertTrue(0 <= row["disturbed"] <= 1)
            for key in ("ns_per_param", "ns_q10", "limit_ns_per_param", "limit_ns_q10", "ratio", "ratio_q10", "ratio_rounds",
                        "relative", "relative_q10", "relative_rounds", "bytes_per_param"):
                self.assertGreater(row[key], 0, key)

    def test_bench_polar(self):
        for words, *options in (
                ("--sizes is '8'", "--sizes", "8"), ("--sizes is '8by8'", "--sizes", "8by8"), ("rows of --sizes is ''", "--sizes", "x8"),
                ("cols of --sizes is '8x8'", "--sizes", "8x8x8"), ("rows of --sizes is '0'", "--sizes", "8x8,0x8"),
                ("cols of --sizes is '-8'", "--sizes", "8x-8"), ("cols of --sizes is '99999'", "--sizes", "8x99999"),
                ("--threads", "--threads", "0"), ("--rounds", "--rounds", "0"), ("no schedule named 'papper'", "--schedule", "papper"),
                ("schedule 'exact' has no steps", "--schedule", "exact")):
            self.refused(USAGE, words, ["bench", "polar", *options])

    def test_bench_polar_speaks_json(self):
        """One object per line as soon as it is measured; the list of GPT-2's matrices at the end takes a minute and is not awaited."""
        command = [PROGRAM, "bench", "polar", "--sizes", "8x12", "--threads", "1", "--rounds", "1", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
            rows = [json.loads(running.stdout.readline()) for _ in range(2)]
            running.kill()
        for row in rows:
            self.assertLessEqual({"rows", "cols", "count", "threads", "schedule", "ms", "naive_ms", "speedup", "sgemm_gflops",
                                  "effective_gflops", "error"}, set(row))
            self.assertEqual((row["rows"], row["cols"], row["threads"], row["schedule"]), (8, 12, 1, "paper"))
            self.assertLess(row["error"], 2e-5)
            self.assertGreater(min(row["ms"], row["naive_ms"], row["speedup"], row["sgemm_gflops"]), 0)
        self.assertEqual(rows[0]["count"], 1)
        self.assertGreater(rows[1]["count"], 1)

    def test_where_to_write(self):
        self.refused(USAGE, "--out is the trace itself", ["replay", self.trace, *ADAMW, "--out", self.trace])
        (self.folder / "link").symlink_to(self.trace)
        self.refused(USAGE, "--out is the trace itself", ["replay", self.trace, *ADAMW, "--out", self.folder / "link"])
        self.refused(USAGE, "--out is empty", ["replay", self.trace, *ADAMW, "--out", ""])
        self.refused(FAILURE, "no directory", ["replay", self.trace, *ADAMW, "--out", self.folder / "none" / "out"])
        self.refused(FAILURE, "is a directory", ["replay", self.trace, *ADAMW, "--out", self.folder])
        self.refused(FAILURE, "/dev/full", ["replay", self.trace, *ADAMW, "--out", "/dev/full"])

    def test_dry_runs_look_at_the_data(self):
        (self.folder / "sub").mkdir()
        (self.folder / "empty").mkdir()
        (self.folder / "tiny.txt").write_text("a text of a few words, and no more\n")
        (self.folder / "text.txt").write_text("a line of a text\n" * 1000)
        plan = ('title = "one"\nseeds = 1\n[base]\nmodel.preset = "nano-100k"\ntrain.steps = 9\n%s[[arm]]\nname = "a"\n'
                '[[arm]]\nname = "b"\noptimizer.decay = "cautious"\n[[contrast]]\na = "a"\nb = "b"\n')
        for file, keys in (("plan.toml", "data.path = 'nope.txt'\n"), ("sub/plan.toml", "data.path = 'nope.txt'\n"),
                           ("sub/words.toml", "data.path = 'gcid'\n"), ("open.toml", "")):
            (self.folder / file).write_text(plan % keys)
        compare = ["compare", "--preset", "nano-100k", "--steps", 40, "--data.cache=cache", "--dry-run", "--data"]
        for code, words, command in (
                (DATA, "data.path: no file or folder 'nope.txt' (looked in ", [*compare, "nope.txt"]),
                (DATA, "empty: a folder without files to read", [*compare, "empty"]),
                (DATA, "sequences of 128 need at least 129", [*compare, "tiny.txt"]),
                (DATA, "'gcide' is not in cache/data; get it: cautious data get gcide --cache cache", [*compare, "gcide"]),
                (DATA, "data.val_path: no file or folder 'nope.txt'", [*compare, "text.txt", "--data.val-path=nope.txt"]),
                (DATA, "'nope.json': no such tokenizer", [*compare, "text.txt", "--data.tokenizer=nope.json"]),
                (DATA, "'gpt2-bpe' is not in cache/data; get it", [*compare, "text.txt", "--data.tokenizer=gpt2-bpe"]),
                (USAGE, "set --model.vocab=256", [*compare, "text.txt", "--model.vocab=10"]),
                (DATA, "plan.toml: data.path: no file or folder 'nope.txt'\n", ["study", "plan.toml", "--dry-run"]),
                (DATA, "sub/plan.toml: data.path: no file or folder 'nope.txt', neither in 'sub' nor here",
                 ["study", "sub/plan.toml", "--dry-run"]),
                (USAGE, "sub/words.toml: data.path: no file, folder or known set named 'gcid'; did you mean 'gcide'?",
                 ["study", "sub/words.toml", "--dry-run"]),
                (DATA, "data.path: no file or folder 'nope.txt'", ["reproduce", "fig-ratio", "--data", "nope.txt", "--dry-run"]),
                (USAGE, "--out: 'tiny.txt' is a file; give a directory",
                 ["reproduce", "fig-ratio", "--data", "text.txt", "--out", "tiny.txt", "--dry-run"])):
            self.refused(code, words, command)
        for command in ([*compare, "text.txt"], ["study", "open.toml", "--dry-run"],
                        ["reproduce", "table-scales", "--scale", "full", "--data", "nope.txt", "--dry-run"]):
            done = subprocess.run([PROGRAM, *map(str, command)], capture_output=True, text=True, cwd=self.folder)
            self.assertEqual((done.returncode, done.stderr), (0, ""), command)
        self.assertFalse((self.folder / "cache").exists())

    def refused_trace(self, words, content, *options):
        self.out.write_bytes(b"the old file stays")
        if isinstance(content, dict):
            trace_file.write(self.trace, content)
        else:
            self.trace.write_bytes(content)
        self.refused_replay(DATA, [str(self.trace), *words], *(options or ADAMW))

    def test_traces(self):
        good = np.full(4, 0.1)
        for words, tensors in (
                (["no tensor", "'x'"], {"g": G}),
                (["no tensor", "'g'"], {"x": X, "gradient": G}),
                (["'g' is a scalar"], {"x": X, "g": np.array(1.0)}),
                (["'g' has shape [4, 3, 2]", "[4, 2, 3]"], {"x": X, "g": G.reshape(4, 3, 2)}),
                (["'g' has shape [24]"], {"x": X, "g": G.ravel()}),
                (["'g' has shape [4, 2, 4]"], {"x": X, "g": np.ones((4, 2, 4))}),
                (["'x' is I64", "F64, F32, BF16"], {"x": X.astype(np.int64), "g": G}),
                (["'g' is F32, but x is F64"], {"x": X, "g": G.astype(np.float32)}),
                (["'g' is F64, but x is BF16"], {"x": trace_file.Bf16.nearest(X), "g": G}),
                (["'lr' is F32", "F64"], {**GOOD, "lr": good.astype(np.float32)}),
                (["'lr' has shape [3]", "[4]"], {**GOOD, "lr": good[:3]}),
                (["'lr' is -1 at step 2", "[0, inf)"], {**GOOD, "lr": np.array([1, -1, 1, 1.0])}),
                (["'lr' is nan at step 4"], {**GOOD, "lr": np.array([1, 1, 1, np.nan])}),
                (["'lr' is inf at step 1"], {**GOOD, "lr": np.array([np.inf, 1, 1, 1])}),
                (["'x0' is F32, but x is F64"], {**GOOD, "x0": X.astype(np.float32)}),
                (["'x0' has shape [3, 2]"], {**GOOD, "x0": X.reshape(3, 2)})):
            self.refused_trace(words, tensors)

    def test_nonfinite_error(self):
        g = G.copy()
        g[1, 1, 1] = np.inf
        trace_file.write(self.trace, {"x": X, "g": g})
        self.refused_replay(DATA, [], *ADAMW, "--nonfinite", "error")

    def test_density_traces(self):
        earlier = self.folder / "earlier.safetensors"
        options = [*ADAMW, "--decay", "random", "--density_trace", earlier]
        for words, tensors in ((["no tensor", "'ratio'"], GOOD), (["'ratio' has shape [3]", "[4]"], {"ratio": np.ones(3)}),
                               (["'ratio' is 1.5 at step 1", "[0, 1]"], {"ratio": np.full(4, 1.5)}),
                               (["'ratio' is nan at step 1"], {"ratio": np.full(4, np.nan)})):
            trace_file.write(earlier, tensors)
            self.refused_replay(DATA, [str(earlier), *words], *options)
        self.refused(USAGE, "--out is the density trace itself", ["replay", self.trace, "--out", earlier, *options])
        earlier.unlink()
        self.refused_replay(DATA, str(earlier), *options)

    def test_malicious_files(self):
        whole = self.trace.read_bytes()
        x = '"x":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}'
        for content in (b"", b"x", whole[:7], whole[:8], whole[:50], whole[:-1], whole + b"x", b"\xff" * 64,
                        safetensors("{" + x + "}", b"", length=1 << 62),
                        safetensors("{" + x + "," + x + "}", bytes(8)),
                        safetensors("{" + x + ',"g":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}', bytes(8)),
                        safetensors("{" + x + ',"g":{"dtype":"F64","shape":[1],"data_offsets":[8,1000]}}', bytes(16)),
                        safetensors('{"x":{"dtype":"F64","shape":[4294967296,4294967296,2],"data_offsets":[0,0]}}'),
                        safetensors('{"x":{"dtype":"F99","shape":[1],"data_offsets":[0,8]}}', bytes(8)),
                        safetensors("[" * 100000), safetensors("not json"), safetensors('{"a\\nb":1}')):
            self.refused_trace([], content)
        self.refused_trace(["trace.safetensors: not a safetensors file\n"], b"Some plain text, a few words long.\n")
        self.trace.unlink()
        self.refused_replay(DATA, [str(self.trace)], *ADAMW)
        self.trace.mkdir()
        self.refused_replay(DATA, [str(self.trace)], *ADAMW)

    def test_standard_output_is_full(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stderr), (FAILURE, "cautious: cannot write to standard output\n"))

    def test_interrupted(self):
        trace_file.write(self.trace, {"x": np.ones(1), "g": np.ones((4_000_000, 1))})
        for number in (signal.SIGINT, signal.SIGTERM):
            running = subprocess.Popen([PROGRAM, "replay", self.trace, *ADAMW, "--threads=1", "--out", self.out], stderr=subprocess.PIPE,
                                       text=True)
            while not catches(running.pid, number):
                time.sleep(0.01)
            running.send_signal(number)
            _, words = running.communicate()
            self.assertEqual((running.returncode, words), (128 + number, "cautious: interrupted; nothing was written\n"))
            self.assertEqual([path.name for path in self.folder.iterdir()], [self.trace.name])

    def test_help_has_examples_first_and_all_defaults(self):
        for command in ([], ["replay"]):
            done = subprocess.run([PROGRAM, *command, "--help"], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertLess(done.stdout.index("Examples:"), done.stdout.index("Usage:"))
        for word in ("--beta1", "0.999", "1e-08", "0.0001", "--fraction", "layerwise", "default: nearest", "corrected"):
            self.assertIn(word, done.stdout)
        done = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True)
        self.assertRegex(done.stdout, r"^cautious \d+\.\d+\.\d+\ncommit \S+, .+, \S*BLAS\S*( [\d.]+)?\n$")
        for one, same in ((["version"], ["--version"]), ([], ["--help"]), (["help"], ["--help"]), (["help", "replay"], ["replay", "--help"])):
            texts = [subprocess.run([PROGRAM, *words], capture_output=True, text=True).stdout for words in (one, same)]
            self.assertEqual(*texts)


if __name__ == "__main__":
    unittest.main()
