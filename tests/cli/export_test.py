"""`cautious export`: tiny models of every family, exported and read by independent readers in numpy, have the loss they had."""
import json
import shutil
import struct
import subprocess
import unittest

import numpy as np

import gguf_numpy
import models_numpy
from import_test import CONTEXT, LLAMA3, VOCAB, Files
from train_fixture import LICENCES, PROGRAM, Training, run

TEXT = "The quick brown fox jumps over the lazy dog, and the dog does not mind: it has seen foxes before."
TYPES = {"f32": gguf_numpy.F32, "f16": gguf_numpy.F16, "bf16": gguf_numpy.BF16, "q8_0": gguf_numpy.Q8_0}


def half_step(values, kind):
    """How far a number may be from what was stored for it."""
    if kind == "f32":
        return 0
    if kind == "q8_0":
        largest = np.abs(values.reshape(-1, 32)).max(-1, keepdims=True)
        return np.broadcast_to(largest / 127 * (0.5 + 1e-3), (len(largest), 32)).reshape(values.shape)
    return np.abs(values) * 2.0 ** (-11 if kind == "f16" else -8) + 2.0 ** -25


class Export(Training):
    def setUp(self):
        super().setUp()
        self.tokenizer = self.folder / "tokenizer.json"
        done = run("tokenize", "--train", "--vocab", VOCAB, LICENCES[0], "--out", self.tokenizer, "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        text = self.folder / "text.txt"
        text.write_text(TEXT)
        self.ids = list(map(int, run("tokenize", text, "--tokenizer", self.tokenizer, "--ids").stdout.split()))

    def folder_of(self, name, config, tensors, dtype="F32"):
        folder = self.folder / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config))
        shutil.copy(self.tokenizer, folder)
        models_numpy.write_safetensors(folder / "model.safetensors", tensors, dtype)
        return folder

    def export(self, model, form, out, kind="f32"):
        done = run("export", model, "--format", form, "--type", kind, "--out", self.folder / out)
        self.assertEqual((done.returncode, done.stdout), (0, f"{self.folder / out}\n"), done.stderr)
        return self.folder / out

    def losses_agree(self, found, expected):
        self.assertAlmostEqual(found.loss(self.ids, CONTEXT), expected.loss(self.ids, CONTEXT), delta=1e-6)

    def test_every_family_means_the_same_in_both_formats(self):
        make = Files(5)
        published = {**LLAMA3, "original_max_position_embeddings": 8192}
        models = make.exported() | {
            "llama-3.1": make.rotary("llama", head_dim=8, rope_theta=5e5, rope_scaling=published),
            "mistral": make.rotary("mistral", sliding_window=None, tie_word_embeddings=False),
        }
        (self.folder / "again").mkdir()
        for name, (config, tensors) in models.items():
            with self.subTest(model=name):
                folder = self.folder_of(name, config, tensors)
                expected = models_numpy.read_model(folder)
                file = self.export(folder, "gguf", name + ".gguf")
                self.losses_agree(gguf_numpy.read_model(file), expected)
                again = file if name == "llama3" else self.export(file, "gguf", f"again/{name}.gguf")
                if name.startswith("gemma"):  # 1 is subtracted from scales and added again
                    self.losses_agree(gguf_numpy.read_model(again), expected)
                else:
                    self.assertEqual(again.read_bytes(), file.read_bytes())
                if name != "gpt2":
                    self.losses_agree(models_numpy.read_model(self.export(folder, "hf", name + "-hf")), expected)

    def test_a_run_in_every_type(self):
        out = self.train("run", "--model.width=32", "--model.head_size=16", "--model.hidden=64", "--train.ema=0.9", steps=3)
        config = json.loads((self.newest(out) / "config.json").read_text())
        tensors = models_numpy.read_safetensors(self.newest(out) / "ema.safetensors")
        expected, self.ids = models_numpy.Rotary(config, tensors), list(TEXT.encode() + b"\0")
        pairs = tensors["model.layers.0.self_attn.k_proj.weight"].reshape(2, 2, 8, 32).swapaxes(1, 2).reshape(32, 32)
        for kind in TYPES:
            with self.subTest(type=kind):
                file = gguf_numpy.File(self.export(out, "gguf", kind + ".gguf", kind))
                self.assertEqual({file.types[name] for name, values in file.tensors.items() if values.ndim == 2}, {TYPES[kind]})
                self.assertEqual({file.types[name] for name, values in file.tensors.items() if values.ndim == 1}, {0})
                for ours, theirs in ((tensors["model.embed_tokens.weight"], "token_embd.weight"), (pairs, "blk.0.attn_k.weight"),
                                     (tensors["model.layers.0.mlp.down_proj.weight"], "blk.0.ffn_down.weight")):
                    self.assertTrue((np.abs(file.tensors[theirs] - ours) <= half_step(ours, kind)).all(), theirs)
                if kind != "q8_0":
                    folder = self.export(self.newest(out), "hf", kind + "-hf", kind)
                    stored = models_numpy.read_safetensors(folder / "model.safetensors")
                    self.assertEqual(stored.keys(), tensors.keys())
                    for name, ours in tensors.items():
                        self.assertTrue((np.abs(stored[name] - ours) <= half_step(ours, kind)).all(), name)
        self.losses_agree(gguf_numpy.LlamaCpp(gguf_numpy.File(self.folder / "f32.gguf")), expected)

    def test_the_tokenizer_in_gguf(self):
        config, tensors = Files(6).rotary("llama", vocab_size=VOCAB)
        folder = self.folder_of("padded", config, tensors)
        smaller = self.folder / "smaller.json"
        run("tokenize", "--train", "--vocab", VOCAB - 3, LICENCES[0], "--out", smaller, "--quiet")
        shutil.copy(smaller, folder / "tokenizer.json")
        known = json.loads(smaller.read_text())
        metadata = gguf_numpy.File(self.export(folder, "gguf", "padded.gguf")).metadata
        tokens, kinds = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
        end = known["model"]["vocab"]["<|endoftext|>"]
        self.assertEqual({token: id for id, token in enumerate(tokens) if id < VOCAB - 3}, known["model"]["vocab"])
        self.assertEqual(tokens[-3:], [f"[PAD{id}]" for id in range(VOCAB - 3, VOCAB)])
        self.assertEqual(kinds, [3 if id == end else 1 if id < VOCAB - 3 else 5 for id in range(VOCAB)])
        self.assertEqual(metadata["tokenizer.ggml.merges"], known["model"]["merges"])
        rest = {key: value for key, value in metadata.items() if key.startswith("tokenizer.") and not isinstance(value, list)}
        self.assertEqual(rest, {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2",
                                "tokenizer.ggml.bos_token_id": end, "tokenizer.ggml.eos_token_id": end,
                                "tokenizer.ggml.add_bos_token": False, "tokenizer.ggml.add_eos_token": False})
        self.assertEqual(metadata["general.name"], "padded")

    def test_what_transformers_looks_for(self):
        folder = self.folder_of("model", *Files(7).rotary("llama"))
        (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))
        out = self.export(folder, "hf", "out", "bf16")
        names = {"config.json", "generation_config.json", "model.safetensors", "special_tokens_map.json", "tokenizer.json",
                 "tokenizer_config.json"}
        self.assertEqual({path.name for path in out.iterdir()}, names)
        read = {path.name: json.loads(path.read_text()) for path in out.iterdir() if path.suffix == ".json"}
        end = json.loads(self.tokenizer.read_text())["model"]["vocab"]["<|endoftext|>"]
        self.assertEqual((read["config.json"]["model_type"], read["config.json"]["torch_dtype"]), ("llama", "bfloat16"))
        self.assertEqual(read["config.json"]["architectures"], ["LlamaForCausalLM"])
        self.assertEqual(read["generation_config.json"]["eos_token_id"], end)
        self.assertEqual(read["special_tokens_map.json"], {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"})
        self.assertEqual(read["tokenizer_config.json"]["tokenizer_class"], "PreTrainedTokenizerFast")
        self.assertEqual(read["tokenizer_config.json"]["chat_template"], "{{ messages }}")
        self.assertEqual(read["tokenizer.json"], json.loads(self.tokenizer.read_text()))
        file = self.export(folder, "gguf", "model.gguf")
        self.assertEqual(gguf_numpy.File(file).metadata["tokenizer.chat_template"], "{{ messages }}")
        again = self.export(file, "hf", "again", "bf16")
        self.assertEqual({path.name: path.read_bytes() for path in again.iterdir()},
                         {path.name: path.read_bytes() for path in out.iterdir()})

    def test_models_in_gguf_that_are_refused(self):
        scaled = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                  "original_max_position_embeddings": 16}
        scaled = self.export(self.folder_of("scaled", *Files(10).rotary("llama", rope_scaling=scaled)), "gguf", "scaled.gguf")
        self.refused(3, ["rope_freqs.weight", "other factors than Llama 3"], "export", scaled, "--format", "hf", "--out", self.folder / "x")
        folder = self.folder_of("model", *Files(10).rotary("llama"))
        raw = self.export(folder, "gguf", "model.gguf").read_bytes()
        bad = self.folder / "bad.gguf"

        def refused(words, old, new):
            self.assertEqual(raw.count(old), 1, old)
            bad.write_bytes(raw.replace(old, new))
            self.refused(3, ["bad.gguf", *words], "export", bad, "--format", "hf", "--out", self.folder / "x")

        def text(name):
            return struct.pack("<Q", len(name)) + name

        refused(["architecture", "llamb", "qwen2"], text(b"llama"), text(b"llamb"))
        refused(["'llama.rope.freq_bosh'", "not known"], b"llama.rope.freq_base", b"llama.rope.freq_bosh")
        base = b"llama.rope.freq_base" + struct.pack("<I", 6)
        refused(["rope.freq_base is 0"], base + struct.pack("<f", 10000), base + struct.pack("<f", 0))
        refused(["no llama.block_count"], b"llama.block_count", b"llama.block_cound")
        refused(["no tensor 'blk.2.ffn_up.weight'"], b"blk.2.ffn_up.weight", b"blk.2.ffn_op.weight")
        tensor = text(b"blk.1.attn_norm.weight") + struct.pack("<IQ", 1, 16)
        refused(["blk.1.attn_norm.weight", "I32", "F32, F16, BF16, Q8_0"], tensor + struct.pack("<I", 0), tensor + struct.pack("<I", 26))
        refused(["tokenizer.ggml.model", "gptx"], text(b"gpt2"), text(b"gptx"))
        refused(["tokenizer.ggml.pre", "gpt-3"], b"gpt-2", b"gpt-3")
        bad.write_bytes(raw[:-40])
        self.refused(3, ["bad.gguf", "truncated"], "export", bad, "--format", "hf", "--out", self.folder / "x")

    def test_refusals_leave_nothing(self):
        folder = self.folder_of("model", *Files(8).rotary("llama"))
        window = self.folder_of("window", *Files(8).rotary("mistral", sliding_window=5))
        large = Files(8).rotary("llama")
        large[1]["model.layers.1.mlp.up_proj.weight"][3, 4] = 1e5
        large = self.folder_of("large", *large)
        untold = self.folder_of("untold", *Files(8).rotary("llama"))
        (untold / "tokenizer.json").unlink()
        before = sorted(self.folder.iterdir())
        gguf, hf = ("--format", "gguf", "--out", self.folder / "x.gguf"), ("--format", "hf", "--out", self.folder / "x")
        self.refused(2, ["exists already", "another --out"], "export", folder, "--format", "gguf", "--out", self.tokenizer)
        self.refused(2, ["exists already"], "export", folder, "--format", "hf", "--out", window)
        self.refused(2, ["window of the model is 5", "'llama'"], "export", window, *gguf)
        self.refused(2, ["q8_0", "f32, f16, bf16"], "export", folder, *hf, "--type", "q8_0")
        self.refused(2, ["q4_0", "f32, f16, bf16, q8_0"], "export", folder, *gguf, "--type", "q4_0")
        self.refused(2, ["ggml", "hf, gguf"], "export", folder, "--format", "ggml", "--out", self.folder / "x")
        self.refused(3, ["blk.1.ffn_up.weight", "f16 cannot hold", "bf16"], "export", large, *gguf, "--type", "f16")
        self.refused(3, ["model.layers.1.mlp.up_proj.weight", "f16 cannot hold"], "export", large, *hf, "--type", "f16")
        self.refused(3, ["untold", "no tokenizer"], "export", untold, *gguf)
        self.refused(3, ["nosuch"], "export", self.folder / "nosuch", *gguf)
        self.refused(1, ["No such file or directory"], "export", folder, "--format", "gguf", "--out", self.folder / "no/x.gguf")
        self.refused(1, ["No such file or directory"], "export", folder, "--format", "hf", "--out", self.folder / "no/x")
        self.assertEqual(sorted(self.folder.iterdir()), before)

    def test_a_full_disk_leaves_nothing(self):
        folder = self.folder_of("model", *Files(9).rotary("llama"))
        before = sorted(self.folder.iterdir())
        for form in ("gguf", "hf"):
            limited = f'ulimit -f 8; trap "" XFSZ; exec "{PROGRAM}" export "{folder}" --format {form} --out "{self.folder}/x"'
            done = subprocess.run(["sh", "-c", limited], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
            self.assertIn("cannot write", done.stderr)
            self.assertEqual(sorted(self.folder.iterdir()), before)


if __name__ == "__main__":
    unittest.main()
