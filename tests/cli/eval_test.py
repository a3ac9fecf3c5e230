"""cautious eval --tasks from end to end: scores against an independent model in numpy, a stopped evaluation that continues, bad
input; and texts with a stride."""
import json
import math
import shutil
import signal
import subprocess
import time
import unittest

from models_numpy import read_model
from train_fixture import PROGRAM, Training, run

WORDS = "the licence of this program is free and you may copy share change or sell it with its source under these terms".split()


def jsonl(path, items):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(item) + "\n" for item in items))


def words(start, count):
    return " ".join(WORDS[(start * 7 + i * 5) % len(WORDS)] for i in range(count))


class Evaluation(Training):
    def setUp(self):
        super().setUp()
        self.data = self.folder / "data"
        jsonl(self.data / "piqa" / "validation.jsonl",
              [{"goal": words(i, 3), "sol1": words(i + 1, 2), "sol2": words(i + 2, 4), "label": i % 2} for i in range(9)])
        for subject in ("law", "us_history"):
            items = [{"question": words(i, 3) + "?", "choices": [words(i + j, 1) for j in range(4)], "answer": i % 4,
                      "subject": subject} for i in range(5)]
            jsonl(self.data / "mmlu" / subject / "test.jsonl", items[2:])
            jsonl(self.data / "mmlu" / subject / "dev.jsonl", items[:2])

    def evaluate(self, *arguments):
        done = run("eval", *arguments, "--data", self.data, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_scores_are_those_of_an_independent_model(self):
        model, out = self.train("run", steps=60), self.folder / "scores"
        results = self.evaluate(model, "--tasks", "piqa", "--limit", "3", "--out", out)
        samples = [json.loads(line) for line in (out / "samples.jsonl").read_text().splitlines()]
        self.assertEqual(sorted(sample["doc_id"] for sample in samples), [0, 1, 2])
        right, oracle = 0, read_model(self.newest(model))
        for sample in samples:
            i = sample["doc_id"]
            context = f"Question: {words(i, 3)}\nAnswer:"
            expected = [-oracle.losses(list(f"{context} {choice}".encode()))[len(context) - 1:].sum()
                        for choice in (words(i + 1, 2), words(i + 2, 4))]
            for ours, theirs in zip(sample["loglikelihoods"], expected):
                self.assertAlmostEqual(ours, theirs, delta=1e-4 * abs(theirs))
            self.assertEqual(sample["acc"], int((expected[1] > expected[0]) == (i % 2 == 1)))
            right += sample["acc"]
        self.assertAlmostEqual(results["results"]["piqa"]["acc,none"], right / 3)
        self.assertEqual(results["n-samples"]["piqa"], {"original": 9, "effective": 3})
        self.assertEqual(results, json.loads((out / "results.json").read_text()))

    def test_a_stopped_evaluation_continues(self):
        model, whole, half = self.train("run"), self.folder / "whole", self.folder / "half"
        command = [model, "--tasks", "piqa,mmlu", "--shots", "1"]
        expected = self.evaluate(*command, "--out", whole)
        self.assertEqual(expected["group_subtasks"]["mmlu"], ["mmlu_law", "mmlu_us_history"])
        self.assertEqual(expected["n-shot"]["mmlu_law"], 1)
        shutil.copytree(whole, half)
        (half / "results.json").unlink()
        lines = (whole / "samples.jsonl").read_text().splitlines(keepends=True)
        self.assertEqual(len(lines), 9 + 2 * 3)
        (half / "samples.jsonl").write_text("".join(lines[:6]) + lines[6][:20])
        self.assertEqual(self.evaluate(*command, "--out", half), expected)
        again = (half / "samples.jsonl").read_text().splitlines(keepends=True)
        self.assertEqual(again[:6], lines[:6])
        self.assertEqual(sorted((s["task"], s["doc_id"]) for s in map(json.loads, again)),
                         sorted((s["task"], s["doc_id"]) for s in map(json.loads, lines)))
        self.refused(2, ["half", "another evaluation", "its shots differs"], "eval", model, "--tasks", "piqa,mmlu", "--data", self.data,
                     "--out", half)
        jsonl(self.data / "piqa" / "validation.jsonl", [{"goal": "a", "sol1": "b", "sol2": "c", "label": 0}] * 3)
        self.refused(2, ["its data differs"], "eval", *command, "--data", self.data, "--out", half)

    def test_an_interrupted_evaluation_says_how_to_continue(self):
        model, out = self.train("run"), self.folder / "scores"
        many = [{"goal": words(i, 3), "sol1": words(i + 1, 2), "sol2": words(i + 2, 4), "label": i % 2} for i in range(20000)]
        jsonl(self.data / "piqa" / "validation.jsonl", many)
        command = ["eval", model, "--tasks", "piqa", "--data", self.data, "--out", out]
        with subprocess.Popen([PROGRAM, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            while running.poll() is None and not ((out / "samples.jsonl").exists() and (out / "samples.jsonl").stat().st_size):
                time.sleep(0.01)
            running.send_signal(signal.SIGINT)
            words_left = running.communicate()[1].splitlines()[-1]
        self.assertEqual(running.returncode, 130, words_left)
        count = len((out / "samples.jsonl").read_text().splitlines())
        self.assertIn(f"interrupted; {count} of 20000 items are done; the same command continues", words_left)

    def test_a_run_scores_its_model_at_the_end(self):
        model = self.train("run", "--eval.tasks=piqa,mmlu:2", f"--eval.data={self.data}", "--eval.limit=2")
        summary, results = (json.loads((model / name).read_text()) for name in ("summary.json", "results.json"))
        later = self.evaluate(model, "--tasks", "piqa,mmlu:2", "--limit", "2")
        for part in ("results", "n-shot", "n-samples"):
            self.assertEqual(results[part], later[part])
        self.assertEqual(results["n-shot"], {"piqa": 0, "mmlu_law": 2, "mmlu_us_history": 2})
        self.assertEqual(summary["eval/piqa/acc_norm"], results["results"]["piqa"]["acc_norm,none"])
        self.assertEqual(summary["eval/mmlu/acc_stderr"], results["results"]["mmlu"]["acc_stderr,none"])
        self.assertNotIn("eval/mmlu_law/acc", summary)
        out = self.folder / "other"
        train = ["train", "--data.path", self.corpus, "--out", out]
        self.refused(2, ["--eval.tasks is not valid: no task named 'hellaswog'", "did you mean 'hellaswag'?"], *train, "--eval.tasks=hellaswog")
        self.refused(2, ["--eval.tasks needs", "set eval.data"], *train, "--eval.tasks=piqa")
        self.refused(3, ["no items of csqa"], *train, "--eval.tasks=csqa", f"--eval.data={self.data}")
        self.refused(2, ["examples of piqa:x", "'x'"], *train, "--eval.tasks=piqa:x", f"--eval.data={self.data}")
        self.assertFalse(out.exists())

    def test_the_table_and_what_is_cut(self):
        model = self.train("run")
        done = run("eval", model, "--tasks", "piqa,mmlu", "--shots", "2", "--data", self.data)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("|piqa", done.stdout)
        self.assertIn("| - us_history|", done.stdout)
        self.assertIn("6 of 6 items are longer than the model's context of 128 tokens", done.stdout)

    def test_bad_input(self):
        model = self.train("run")
        evaluate = ["eval", model, "--data", self.data, "--tasks"]
        self.refused(2, ["no task named 'hellaswog'", "did you mean 'hellaswag'?"], *evaluate, "hellaswog")
        self.refused(2, ["'piqa' twice"], *evaluate, "piqa,piqa")
        self.refused(3, ["no items of csqa", "csqa/validation.jsonl"], *evaluate, "csqa")
        self.refused(3, ["mmlu of law", "--shots is 3", "only 2 examples"], *evaluate, "mmlu", "--shots", "3")
        self.refused(2, ["--shots", "-1"], *evaluate, "piqa", "--shots=-1")
        self.refused(2, ["--seed is '-1'; valid: [0, 2^64)"], *evaluate, "piqa", "--seed", "-1")
        self.refused(2, ["--shots", "--tasks"], "eval", model, "--data", self.corpus, "--shots", "3")
        jsonl(self.data / "csqa.jsonl", [{"question": "q"}])
        self.refused(3, ["csqa.jsonl: line 1: no field 'choices'"], *evaluate, "csqa")

    def test_a_stride(self):
        model, text = self.train("run"), self.folder / "text.txt"
        text.write_text(self.corpus.read_text()[3000:3301].replace("\n", " "))
        results = []
        for stride in ([], ["--stride", "128"], ["--stride", "40"]):
            done = run("eval", model, "--data", text, "--json", *stride)
            self.assertEqual(done.returncode, 0, done.stderr)
            results.append(json.loads(done.stdout))
        plain, beside, overlapping = results
        self.assertEqual([r["targets"] for r in results], [2 * 128, 301, 301])  # every one but the first byte, and the end
        self.assertEqual([r["stride"] for r in results], [128, 128, 40])
        self.assertEqual([r["tokens"] for r in results], [302] * 3)
        self.assertAlmostEqual(plain["perplexity"], math.exp(plain["loss"]))
        self.refused(2, ["--field", "--tasks"], "eval", model, "--data", self.data, "--tasks", "piqa", "--field", "x")
        self.assertLess(overlapping["loss"], beside["loss"])  # more context
        oracle, ids, nats = read_model(self.newest(model)), list(text.read_bytes() + b"\0"), 0
        for first, known in [(0, 0), (40, 88), (80, 88), (120, 88), (160, 88), (173, 115)]:
            nats += oracle.losses(ids[first:first + 129])[known:].sum()
        self.assertAlmostEqual(overlapping["loss"], nats / 301, places=5)
        for r in results:
            self.assertAlmostEqual(r["byte_perplexity"], 2 ** r["bits_per_byte"])
        count = len((text.read_text()[1:]).split())
        self.assertAlmostEqual(overlapping["word_perplexity"], math.exp(overlapping["loss"] * 301 / count))
        self.refused(2, ["--tokens excludes --stride"], "eval", model, "--data", text, "--stride", 64, "--tokens", 1000)
        for stride in (0, 129):
            self.refused(2, [f"--stride is {stride}; valid: [1, 128]"], "eval", model, "--data", text, "--stride", stride)


if __name__ == "__main__":
    unittest.main()
