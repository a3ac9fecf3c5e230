"""Exported GGUF files in llama.cpp itself: the losses that numpy computes, token by token, and the tokens of our tokenizers.
Run by run.sh, which installs llama.cpp; not part of `make test`."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
INSTALLED = pathlib.Path(sys.argv.pop(2)).resolve()  # where node finds the packages

import models_numpy
from import_test import CONTEXT, VOCAB, Files
from train_fixture import LICENCES, Training, run

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "cautious/data"
TEXTS = ["Once upon a time, there was a little girl named Lily. She loved to play outside.", " leading and trailing  ", "\n\n\t x",
         "Ünïcödé ✓ 日本語 🙂", "1234567 3.14 don't I'LL we've", "a", "<s> </s> <|endoftext|> <unk>",
         "".join(" " * n + "x" for n in range(1, 40)), LICENCES[0].read_text()[:6000]]
WITHIN = {"f32": 1e-4, "f16": 2e-3, "bf16": 0.1, "q8_0": 0.2}  # of the loss of one token


class LlamaCpp(Training):
    def llama_cpp(self, file, texts, ids):
        asked = json.dumps({"model": str(file), "texts": texts, "ids": ids})
        shutil.copy(HERE / "evaluate.mjs", INSTALLED)
        done = subprocess.run(["node", INSTALLED / "evaluate.mjs"], input=asked, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout.splitlines()[-1])

    def export(self, model, out, kind="f32"):
        done = run("export", model, "--format", "gguf", "--type", kind, "--out", self.folder / out)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.folder / out

    def tokens(self, tokenizer, text):
        """Without the end of the document, which is not printed."""
        file = self.folder / "one.txt"
        file.write_text(text)
        done = run("tokenize", file, "--tokenizer", tokenizer, "--ids", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        return list(map(int, done.stdout.split()))

    def check(self, name, file, oracle, ids, kind="f32", within=None):
        expected = oracle.losses(np.asarray(ids))
        found = np.asarray(self.llama_cpp(file, [], [ids])["losses"][0])
        worst = np.abs(found - expected).max()
        print(f"{name:<12} {kind:<5} {len(expected)} tokens  loss {expected.mean():.5f}  llama.cpp {found.mean():.5f}  "
              f"largest difference {worst:.2g}", flush=True)
        self.assertLess(worst, within or WITHIN[kind], name)

    def check_tokens(self, file, tokenizer, texts=tuple(TEXTS)):
        answer = self.llama_cpp(file, list(texts), [])
        for text, found in zip(texts, answer["tokens"]):
            self.assertEqual(found, self.tokens(tokenizer, text), text[:100])
        return answer

    def test_stories15m(self):
        done = run("data", "get", "stories15m")
        self.assertEqual(done.returncode, 0, done.stderr)
        oracle = models_numpy.read_model(CACHE / "stories15m/stories15M.bin")
        for kind in WITHIN:
            file = self.export("stories15m", f"{kind}.gguf", kind)
            ids = [1, *self.tokens(CACHE / "stories15m/tokenizer.bin", TEXTS[0])]
            self.check("stories15m", file, oracle, ids, kind)
        answer = self.check_tokens(file, CACHE / "stories15m/tokenizer.bin")
        self.assertEqual((answer["adds_beginning"], answer["beginning"], answer["end"]), (True, 1, 2))

    def test_a_run_of_our_own(self):
        out = self.train("run", "--model.width=32", "--model.head_size=16", "--model.hidden=64", steps=50)
        oracle = models_numpy.read_model(self.newest(out))
        for kind in WITHIN:
            file = self.export(out, f"{kind}.gguf", kind)
            self.check("run", file, oracle, list(TEXTS[0].encode()), kind)
        self.assertFalse(self.check_tokens(file, "bytes")["adds_beginning"])

    def test_every_architecture(self):
        tokenizer = self.folder / "tokenizer.json"
        done = run("tokenize", "--train", "--vocab", VOCAB, LICENCES[0], "--out", tokenizer, "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        ids = self.tokens(tokenizer, TEXTS[0])[:CONTEXT]
        for name, (config, tensors) in Files(5).exported().items():
            with self.subTest(model=name):
                folder = self.folder / name
                folder.mkdir()
                (folder / "config.json").write_text(json.dumps(config))
                shutil.copy(tokenizer, folder)
                models_numpy.write_safetensors(folder / "model.safetensors", tensors)
                file = self.export(folder, name + ".gguf")
                # GELU is a table of f16 numbers there.
                self.check(name, file, models_numpy.read_model(folder), ids, within=5e-3 if name[:3] in ("gem", "gpt") else None)
        self.assertFalse(self.check_tokens(file, tokenizer)["adds_beginning"])


if __name__ == "__main__":
    unittest.main()
