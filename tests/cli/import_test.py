"""Models of others: tiny ones of every family, as Hugging Face and llama2.c write them, have the loss that numpy computes; runs
start from them; what does not fit is refused."""
import concurrent.futures
import json
import shutil
import struct
import unittest

import numpy as np

from models_numpy import read_model, write_safetensors
from train_fixture import Training, run

CONTEXT, VOCAB, WIDTH, HEADS, SIZE, HIDDEN, LAYERS = 32, 300, 16, 4, 4, 24, 3
TEXT = "The quick brown fox jumps over the lazy dog, and the dog does not mind: it has seen foxes before."
# What files of real models have beside the numbers, and what means nothing for a loss.
USUAL = {"architectures": ["AnyForCausalLM"], "torch_dtype": "bfloat16", "transformers_version": "4.46.0", "use_cache": True,
         "bos_token_id": 1, "eos_token_id": [2, 3], "initializer_range": 0.02, "attention_dropout": 0.0}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}


class Files:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def matrix(self, *shape):
        return self.random.normal(size=shape) * (0.4 if len(shape) == 2 else 0.2)

    def rotary(self, family, **more):
        """config.json and tensors of a family that is like Llama."""
        config = {**USUAL, "model_type": family, "vocab_size": VOCAB, "hidden_size": WIDTH, "intermediate_size": HIDDEN,
                  "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": 2,
                  "max_position_embeddings": CONTEXT, "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
                  "tie_word_embeddings": True, **more}
        size, center = config.get("head_dim", SIZE), 0 if family.startswith("gemma") else 1
        biases = config.get("attention_bias", False)
        names = {"self_attn.q_proj": (HEADS * size, WIDTH, biases or family == "qwen2"),
                 "self_attn.k_proj": (2 * size, WIDTH, biases or family == "qwen2"),
                 "self_attn.v_proj": (2 * size, WIDTH, biases or family == "qwen2"),
                 "self_attn.o_proj": (WIDTH, HEADS * size, biases),
                 "mlp.gate_proj": (HIDDEN, WIDTH, config.get("mlp_bias", False)),
                 "mlp.up_proj": (HIDDEN, WIDTH, config.get("mlp_bias", False)),
                 "mlp.down_proj": (WIDTH, HIDDEN, config.get("mlp_bias", False))}
        norms = {} if family == "olmo" else {"input_layernorm": WIDTH, "post_attention_layernorm": WIDTH}
        if family == "gemma2":
            norms |= {"pre_feedforward_layernorm": WIDTH, "post_feedforward_layernorm": WIDTH}
        if family == "qwen3":
            norms |= {"self_attn.q_norm": size, "self_attn.k_norm": size}
        tensors = {"model.embed_tokens.weight": self.matrix(VOCAB, WIDTH)}
        for layer in (f"model.layers.{n}." for n in range(LAYERS)):
            tensors |= {f"{layer}{name}.weight": center + self.matrix(width) for name, width in norms.items()}
            for name, (rows, columns, bias) in names.items():
                tensors[f"{layer}{name}.weight"] = self.matrix(rows, columns)
                if bias:
                    tensors[f"{layer}{name}.bias"] = self.matrix(rows)
        if family != "olmo":
            tensors["model.norm.weight"] = center + self.matrix(WIDTH)
        if not config["tie_word_embeddings"]:
            tensors["lm_head.weight"] = self.matrix(VOCAB, WIDTH)
        return config, tensors

    def exported(self):
        """One of each kind that goes out again."""
        gemma = {"head_dim": 6, "hidden_activation": "gelu_pytorch_tanh"}
        return {
            "llama": self.rotary("llama", tie_word_embeddings=False, attention_bias=True, mlp_bias=True),
            "linear": self.rotary("llama", head_dim=2 * SIZE, rope_scaling={"type": "linear", "factor": 4.0}),
            "llama3": self.rotary("llama", rope_scaling=LLAMA3),
            "qwen2": self.rotary("qwen2"),
            "qwen3": self.rotary("qwen3", head_dim=6, rope_theta=1e6),
            "olmo": self.rotary("olmo", rms_norm_eps=None),
            "gemma": self.rotary("gemma", **gemma),
            "gemma2": self.rotary("gemma2", **gemma, query_pre_attn_scalar=6, sliding_window=5, attn_logit_softcapping=2.0,
                                  final_logit_softcapping=3.0),
            "gpt2": self.gpt2("transformer."),
        }

    def gpt2(self, prefix):
        config = {**USUAL, "model_type": "gpt2", "vocab_size": VOCAB, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS,
                  "n_positions": CONTEXT, "n_ctx": CONTEXT, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
                  "attn_pdrop": 0.1, "embd_pdrop": 0.1, "resid_pdrop": 0.1, "summary_type": "cls_index", "n_inner": None,
                  "task_specific_params": {"text-generation": {"do_sample": True}}}
        tensors = {"wte.weight": self.matrix(VOCAB, WIDTH), "wpe.weight": self.matrix(CONTEXT, WIDTH)}
        for layer in (f"h.{n}." for n in range(LAYERS)):
            for name in ("ln_1", "ln_2"):
                tensors |= {f"{layer}{name}.weight": 1 + self.matrix(WIDTH), f"{layer}{name}.bias": self.matrix(WIDTH)}
            for name, rows, columns in (("attn.c_attn", WIDTH, 3 * WIDTH), ("attn.c_proj", WIDTH, WIDTH),
                                        ("mlp.c_fc", WIDTH, 4 * WIDTH), ("mlp.c_proj", 4 * WIDTH, WIDTH)):
                tensors |= {f"{layer}{name}.weight": self.matrix(rows, columns), f"{layer}{name}.bias": self.matrix(columns)}
            if not prefix:
                tensors |= {f"{layer}attn.bias": np.tri(CONTEXT)[None, None], f"{layer}attn.masked_bias": np.float64(-1e4)}
        tensors |= {"ln_f.weight": 1 + self.matrix(WIDTH), "ln_f.bias": self.matrix(WIDTH)}
        return config, {prefix + name: values for name, values in tensors.items()}

    def llama2c(self, path, version, shared):
        numbers = (WIDTH, HIDDEN, LAYERS, HEADS, 2, VOCAB if shared or version else -VOCAB, CONTEXT)
        per_layer = {"norm1": (WIDTH,), "q": (WIDTH, WIDTH), "k": (WIDTH // 2, WIDTH), "v": (WIDTH // 2, WIDTH),
                     "o": (WIDTH, WIDTH), "norm2": (WIDTH,), "w1": (HIDDEN, WIDTH), "w2": (WIDTH, HIDDEN), "w3": (HIDDEN, WIDTH)}
        parts = {name: [self.matrix(*shape) + (len(shape) == 1) for _ in range(LAYERS)] for name, shape in per_layer.items()}
        parts |= {"last": [1 + self.matrix(WIDTH)], "embedding": [self.matrix(VOCAB, WIDTH)],
                  "tables": [np.zeros((2, CONTEXT, WIDTH // HEADS // 2))], "output": [self.matrix(VOCAB, WIDTH)]}
        order = "norm1 norm2 last embedding q k v o w1 w2 w3" if version else "embedding norm1 q k v o norm2 w1 w2 w3 last tables"
        header = struct.pack("<Ii7iB", 0x616b3432, 1, *numbers, shared).ljust(256, b"\0") if version else struct.pack("<7i", *numbers)
        values = [part for name in [*order.split(), *([] if shared else ["output"])] for part in parts[name]]
        path.write_bytes(header + b"".join(part.astype("<f4").tobytes() for part in values))


class Import(Training):
    def setUp(self):
        super().setUp()
        self.text = self.folder / "text.txt"
        self.text.write_text(TEXT)
        self.tokenizer = self.newest(self.train("bytes", steps=1)) / "tokenizer.json"

    def folder_of(self, name, config, tensors, dtype="F32", shards=1):
        folder = self.folder / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config))
        shutil.copy(self.tokenizer, folder)
        names = list(tensors)
        if shards == 1:
            write_safetensors(folder / "model.safetensors", tensors, dtype)
            return folder
        files = [f"model-{n + 1:05}-of-{shards:05}.safetensors" for n in range(shards)]
        for n, file in enumerate(files):
            write_safetensors(folder / file, {each: tensors[each] for each in names[n::shards]}, dtype)
        index = {"metadata": {"total_size": 1}, "weight_map": {each: files[n % shards] for n, each in enumerate(names)}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        return folder

    def models(self):
        make = Files(17)
        linear = {"rope_scaling": {"type": "linear", "factor": 4.0}}
        llama3 = {"rope_scaling": LLAMA3}
        gemma = {"head_dim": 6, "hidden_act": "gelu", "hidden_activation": "gelu_pytorch_tanh"}
        gemma2 = {**gemma, "query_pre_attn_scalar": 9, "sliding_window": 5, "attn_logit_softcapping": 2.0,
                  "final_logit_softcapping": 3.0, "cache_implementation": "hybrid"}
        stored_twice = make.rotary("qwen2", use_sliding_window=False, sliding_window=8, max_window_layers=1)
        stored_twice[1]["lm_head.weight"] = stored_twice[1]["model.embed_tokens.weight"]
        old = make.rotary("llama", tie_word_embeddings=False, attention_bias=True, mlp_bias=True, pretraining_tp=1)
        old[1]["model.layers.0.self_attn.rotary_emb.inv_freq"] = np.ones(SIZE // 2)
        folders = {
            "llama": self.folder_of("llama", *old),
            "linear": self.folder_of("linear", *make.rotary("llama", **linear), "BF16"),
            "llama3": self.folder_of("llama3", *make.rotary("llama", **llama3), "F16", shards=3),
            "mistral": self.folder_of("mistral", *make.rotary("mistral", sliding_window=7, tie_word_embeddings=False), "BF16"),
            "qwen2": self.folder_of("qwen2", *stored_twice),
            "qwen2 windows": self.folder_of("qwen2-windows", *make.rotary("qwen2", use_sliding_window=True, sliding_window=8,
                                                                          max_window_layers=0)),
            "qwen3": self.folder_of("qwen3", *make.rotary("qwen3", head_dim=6, rope_theta=1e6), "F64"),
            "olmo": self.folder_of("olmo", *make.rotary("olmo", clip_qkv=None, rms_norm_eps=None)),
            "gemma": self.folder_of("gemma", *make.rotary("gemma", **gemma)),
            "gemma2": self.folder_of("gemma2", *make.rotary("gemma2", **gemma2), shards=2),
            "gpt2": self.folder_of("gpt2", *make.gpt2("transformer."), "F16"),
            "gpt2 with tables": self.folder_of("gpt2-tables", *make.gpt2("")),
        }
        for name, version, shared in (("llama2.c", 0, True), ("llama2.c output", 0, False), ("llama2.c 1", 1, True),
                                      ("llama2.c 1 output", 1, False)):
            folders[name] = self.folder / name / "model.bin"
            folders[name].parent.mkdir()
            shutil.copy(self.tokenizer, folders[name].parent)
            make.llama2c(folders[name], version, shared)
        return folders

    def evaluated(self, model):
        done = run("eval", model, "--data", self.text, "--threads", "1", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["loss"]

    def test_every_family_has_the_loss_that_numpy_computes(self):
        ids, models = list(TEXT.encode() + b"\0"), self.models()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            found = {name: pool.submit(self.evaluated, path) for name, path in models.items()}
        for name, path in models.items():
            with self.subTest(model=name):
                self.assertAlmostEqual(found[name].result(), read_model(path).loss(ids, CONTEXT), delta=1e-5)

    def init(self, model, out, *more, steps):
        return ["train", "--init", model, f"--data.path={self.corpus}", f"--data.cache={self.folder / 'cache'}",
                f"--train.steps={steps}", "--train.batch_size=4", "--train.threads=1", "--eval.tokens=512", "--quiet",
                "--out", self.folder / out, *more]

    def test_runs_start_from_a_model_and_continue_without_it(self):
        config, tensors = Files(18).rotary("qwen2", tie_word_embeddings=False)
        model = self.folder_of("start", config, tensors, "BF16")
        done = run(*self.init(model, "still", "--optimizer.lr=1e-30", "--optimizer.weight_decay=0", steps=1))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.evaluated(model), self.evaluated(self.folder / "still"))
        saved = json.loads((self.newest(self.folder / "still") / "config.json").read_text())
        self.assertEqual({key: saved[key] for key in ("model_type", "vocab_size", "num_key_value_heads")},
                         {"model_type": "qwen2", "vocab_size": VOCAB, "num_key_value_heads": 2})
        written = (self.folder / "still" / "config.toml").read_text()
        self.assertIn(f'from = "{model}"', written)
        self.assertIn(f'tokenizer = "{model}"', written)

        outs = [self.folder / name for name in ("whole", "rest")]
        for out in outs:
            done = run(*self.init(model, out.name, "--checkpoint.every=3", "--optimizer.decay=anchored", steps=6))
            self.assertEqual(done.returncode, 0, done.stderr)
        shutil.rmtree(model)
        shutil.rmtree(self.newest(outs[1]))
        done = run("train", "--out", outs[1], "--resume", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.weights(outs[0]), self.weights(outs[1]))

    def test_what_does_not_fit_is_refused(self):
        config, tensors = Files(19).rotary("llama")
        model = self.folder_of("model", config, tensors)
        self.refused(2, ["--init has a shape of its own", "--preset"], *self.init(model, "a", "--preset", "nano-1m", steps=1))
        self.refused(2, ["'model.layers.2.input_layernorm.weight' differs", str(model)],
                     *self.init(model, "b", "--model.layers=2", steps=1))
        self.refused(3, ["--model.from", "'none' does not exist"], *self.init("none", "c", steps=1))
        large = json.loads(self.tokenizer.read_text())
        for n in range(VOCAB):
            large["added_tokens"].append({"id": 257 + n, "content": f"<{n}>" if n else "</s>", "special": True, "single_word": False,
                                          "lstrip": False, "rstrip": False, "normalized": False})
        (model / "tokenizer.json").write_text(json.dumps(large))
        self.refused(3, [f"has a vocabulary of {257 + VOCAB}, but the model has one of {VOCAB}"], "eval", model, "--data", self.text)
        shutil.copy(self.tokenizer, model)
        tensors["model.norm.weight"][5] = np.nan
        write_safetensors(model / "model.safetensors", tensors)
        self.refused(3, ["value 5 of tensor 'model.norm.weight' is nan"], "eval", model, "--data", self.text)
        (model / "config.json").write_text(json.dumps({**config, "model_type": "mamba"}))
        self.refused(3, ["config.json: no model_type named 'mamba'; choices: llama"], "eval", model, "--data", self.text)


if __name__ == "__main__":
    unittest.main()
