"""The verbs that need libtorch, through the program: dry runs, benchmarks, bad input, a missing cautious-train."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()


def run(*command, program=PROGRAM):
    return subprocess.run([program, *command], capture_output=True, text=True)


class TrainProgram(unittest.TestCase):
    def refused(self, code, words, *command, program=PROGRAM):
        done = run(*command, program=program)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (code, "", 1), done.stderr)
        self.assertTrue(done.stderr.startswith("cautious: "), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_dry_run_tells_what_a_preset_costs(self):
        done = run("train", "--preset", "gemma-2.3b", "--dry-run", "--train.batch_size=2")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = dict(line.split(None, 1) for line in done.stdout.splitlines())
        self.assertEqual(list(lines), ["model", "parameters", "optimizer", "step", "tokens", "memory", "machine", "time"])
        self.assertIn("2321380352", lines["parameters"])
        self.assertIn("batch 2 x 2048", lines["step"])
        self.assertIn("34.6 GiB", lines["memory"])  # 16 bytes each
        self.assertIn("46.4B in ", lines["tokens"])

    def test_the_banner_tells_what_is_not_usual_and_what_is_kept(self):
        def lines(*more):
            done = run("train", "--preset", "nano-300k", "--dry-run", *more)
            self.assertEqual(done.returncode, 0, done.stderr)
            found = dict(line.split(None, 1) for line in done.stdout.splitlines())
            return found["optimizer"], found["memory"].split(";")[0]

        for more, optimizer, kept in (
                (["--optimizer.name=sgd"], "sgd decay=decoupled weight_decay=0.0001 lr=0.5 cosine",
                 "2.5 MiB parameters and gradients"),
                (["--optimizer.name=lion"], "lion beta2=0.95 decay=decoupled weight_decay=0.1 lr=0.001 cosine",
                 "3.8 MiB parameters, gradients and one moment"),
                (["--optimizer.moments=bf16", "--optimizer.decay=cautious"],
                 "adamw beta2=0.95 decay=cautious weight_decay=0.1 lr=0.005 cosine",
                 "3.8 MiB parameters, gradients and two moments"),
                (["--optimizer.name=muon", "--optimizer.steps=3"],
                 "muon nesterov=on steps=3 scale=rms decay=decoupled weight_decay=0.1 lr=0.01 cosine",
                 "3.9 MiB parameters, gradients and one moment (two moments outside the matrices)")):
            self.assertEqual(lines(*more), (optimizer, kept))

    def test_dry_run_looks_at_the_data(self):
        with tempfile.TemporaryDirectory() as holder:
            folder = pathlib.Path(holder)
            text, tiny, empty, long = (folder / name for name in ("text.txt", "tiny.txt", "empty", "long.txt"))
            text.write_text("a line of a text\n" * 2000)
            tiny.write_text("a text of a few words, and no more\n")
            long.write_text("a line of a text\n" * 300000)
            empty.mkdir()
            (folder / "used").mkdir()
            (folder / "used/config.toml").write_text("")
            before = sorted(folder.rglob("*"))

            def command(data, *more):
                return ["train", "--preset", "nano-100k", "--dry-run", f"--data.path={data}", f"--data.cache={folder / 'cache'}", *more]

            for code, words, arguments in (
                    (3, ["data.path: no file or folder"], command(folder / "nope.txt")),
                    (3, ["a folder without files to read"], command(empty)),
                    (3, ["sequences of 128 need at least 129"], command(tiny)),
                    (3, [f"{tiny} (entry 2 of data.path): its training text has"],
                     command(f"{text},{tiny}", "--data.weights=0.5,0.5")),
                    (2, ["data.tokenizer 'bytes' has 256 tokens, model.vocab is 10; set --model.vocab=256"],
                     command(text, "--model.vocab=10")),
                    (2, ["set --model.vocab=256"], command(long, "--model.vocab=10")),
                    (2, ["is a file; give a directory"], command(text, "--out", tiny)),
                    (2, ["is a file; give a directory"], [word for word in command(text, "--out", tiny) if word != "--dry-run"]),
                    (2, ["is not empty (config.toml); to continue it"], command(text, "--out", folder / "used"))):
                self.refused(code, words, *arguments)
            done = run(*command(text, "--out", folder / "new"))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"data +32301 training tokens, 1700 validation tokens: the last 5% of text.txt")
            done = run(*command(long))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"data +\S+long.txt: not read in this dry run\n")
            elsewhere = run(*command(folder / "nope.txt", "--world", "4", "--hardware", "a100-80g"))
            self.assertEqual(elsewhere.returncode, 0, elsewhere.stderr)
            self.assertEqual(sorted(folder.rglob("*")), before)

    def test_recomputation_saves_activations(self):
        def activations(*more):
            words = run("train", "--preset", "gemma-111m", "--dry-run", *more).stdout.split("two moments; ")[1].split()
            return float(words[0]) * {"MiB": 1, "GiB": 1024}[words[1]]

        self.assertLess(activations("--model.recompute=true"), activations() / 3)

    def test_benchmark_lines_are_objects(self):
        done = run("bench", "train", "--presets", "nano-100k", "--rounds", "1", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        row = json.loads(done.stdout)
        for key in ("tokens_per_s", "plain_tokens_per_s", "speedup", "gflops", "sgemm_gflops", "fraction", "peak_rss_mb"):
            self.assertGreater(row[key], 0, key)
        self.assertEqual(row["preset"], "nano-100k")
        self.assertTrue(0 < row["optimizer_fraction"] < 1)

    def test_benchmark_of_images_has_its_keys(self):
        done = run("bench", "image", "--presets", "vit-nano-4", "--rounds", "1", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([row["preset"] for row in rows], ["vit-nano-4"])
        for row in rows:
            for key in ("batch", "images_per_s", "plain_images_per_s", "speedup", "loader_images_per_s", "threads", "gflops"):
                self.assertGreater(row[key], 0, key)

    def test_benchmark_of_decoding_has_its_keys(self):
        done = run("bench", "decode", "--presets", "nano-100k", "--rounds", "1", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        row = json.loads(done.stdout)
        self.assertEqual((row["preset"], row["parameters"], row["threads"]), ("nano-100k", 117056, 2))
        for key in ("tokens_per_s", "limit_tokens_per_s", "ratio"):
            self.assertGreater(row[key], 0, key)

    def test_peers_agree_and_are_timed(self):
        done = run("bench", "peers", "--sizes", "100,1000x160", "--threads", "1", "--rounds", "1", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        peers = [row["peer"] for row in rows if row["scenario"] == "flat"]
        self.assertEqual(peers, [row["peer"] for row in rows if row["scenario"] == "1000x160"])
        self.assertLessEqual({"cautious", "cautious-norms-off", "cautious-torch", "libtorch-adamw", "aten-cwd", "loop-o2", "limit"},
                             set(peers))
        for row in rows:
            for key in ("ns_per_param", "ns_q10", "ratio", "ratio_q10", "ratio_rounds", "speedup", "speedup_q10", "speedup_rounds"):
                self.assertGreater(row[key], 0, key)
            self.assertTrue(0 <= row["disturbed"] <= 1)
            self.assertEqual((row["n"], row["tensors"]), (100, 1) if row["scenario"] == "flat" else (160000, 1000))

    def test_help_is_its_own(self):
        done = run("train", "--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("--print-config", done.stdout)
        self.assertIn("nano-10m", done.stdout)
        self.assertIn("--presets", run("bench", "train", "--help").stdout)

    def test_bad_input_is_one_line(self):
        self.refused(2, ["nano-10n", "did you mean", "nano-10m"], "train", "--preset", "nano-10n", "--dry-run")
        self.refused(2, ["train.batch_size", "0"], "train", "--preset", "nano-10m", "--dry-run", "--train.batch_size=0")
        self.refused(2, ["nano", "choices"], "bench", "train", "--presets", "nano")
        self.refused(2, ["--rounds"], "bench", "train", "--rounds", "0")
        self.refused(2, ["resnet20", "did you mean", "resnet-20"], "bench", "image", "--presets", "resnet20")
        self.refused(2, ["--threads"], "bench", "image", "--threads", "0")
        self.refused(2, ["nano", "choices"], "bench", "decode", "--presets", "nano")
        self.refused(2, ["--sizes is 'gpt2'", "gpt2-small"], "bench", "peers", "--sizes", "1e4,gpt2")
        self.refused(2, ["--threads"], "bench", "peers", "--threads", "0")

    def test_without_it_the_line_says_what_to_do(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = shutil.copy(PROGRAM, folder)
            self.refused(1, ["cautious-train", "libtorch-dev", "CAUTIOUS_TORCH"], "train", "--preset", "nano-1m", program=alone)


if __name__ == "__main__":
    unittest.main()
