"""GGUF in numpy, from llama.cpp's definitions: the file, and the model in it as llama.cpp computes it."""
import struct

import numpy as np

from models_numpy import Gpt2, Rotary

NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
F32, F16, Q8_0, BF16 = 0, 1, 8, 30
BYTES = {F32: (1, 4), F16: (1, 2), Q8_0: (32, 34), BF16: (1, 2)}  # numbers of a block, and its bytes


class File:
    """metadata by key, types and tensors (float64, innermost side last) by name."""

    def __init__(self, path):
        self.raw, self.at = path.read_bytes(), 0
        assert self.raw[:4] == b"GGUF"
        self.at = 4
        version, tensors, keys = self.take("I"), self.take("Q"), self.take("Q")
        assert version == 3
        self.metadata, self.types, self.tensors = {}, {}, {}
        for _ in range(keys):
            key = self.text()
            assert key not in self.metadata
            self.metadata[key] = self.value(self.take("I"))
        places = []
        for _ in range(tensors):
            name, sides = self.text(), [self.take("Q") for _ in range(self.take("I"))]
            places.append((name, sides[::-1], self.take("I"), self.take("Q")))
        start, end = -(-self.at // 32) * 32, 0
        assert not any(self.raw[self.at:start])
        for name, shape, kind, offset in places:
            assert offset == end and name not in self.tensors
            numbers, size = BYTES[kind]
            assert shape[-1] % numbers == 0
            count = int(np.prod(shape)) // numbers * size
            self.types[name] = kind
            self.tensors[name] = self.decoded(self.raw[start + offset:start + offset + count], kind).reshape(shape)
            end = -(-(offset + count) // 32) * 32
        assert start + end == len(self.raw)

    def take(self, kind):
        (value,) = struct.unpack_from("<" + kind, self.raw, self.at)
        self.at += struct.calcsize("<" + kind)
        return value

    def text(self):
        size = self.take("Q")
        self.at += size
        return self.raw[self.at - size:self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind != 9:
            return self.take(NUMBERS[kind])
        inner, count = self.take("I"), self.take("Q")
        return [self.value(inner) for _ in range(count)]

    def decoded(self, data, kind):
        if kind == Q8_0:
            blocks = np.frombuffer(data, np.dtype([("scale", "<f2"), ("steps", "i1", 32)]))
            return (blocks["scale"][:, None].astype(np.float64) * blocks["steps"]).reshape(-1)
        if kind == BF16:
            return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        return np.frombuffer(data, "<f2" if kind == F16 else "<f4").astype(np.float64)


ENDS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
LAYER = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
         "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
         "attn_k_norm": "self_attn.k_norm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
GEMMA2 = {"post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
          "post_ffw_norm": "post_feedforward_layernorm"}
GPT2_ENDS = {"token_embd": "wte", "position_embd": "wpe", "output_norm": "ln_f"}
GPT2 = {"attn_norm": "ln_1", "attn_qkv": "attn.c_attn", "attn_output": "attn.c_proj", "ffn_norm": "ln_2", "ffn_up": "mlp.c_fc",
        "ffn_down": "mlp.c_proj"}


def renamed(tensors, ends, before, layer):
    out = {}
    for name, values in tensors.items():
        module, kind = name.rsplit(".", 1)
        if module.startswith("blk."):
            _, number, module = module.split(".")
            out[f"{before}{number}.{layer[module]}.{kind}"] = values
        else:
            out[f"{ends[module]}.{kind}"] = values
    return out


class LlamaCpp(Rotary):
    """Its scales are whole, and llama and olmo rotate neighbours, as complex numbers."""

    def __init__(self, file):
        m, arch = file.metadata, file.metadata["general.architecture"]
        get = {key.removeprefix(arch + "."): value for key, value in m.items() if key.startswith(arch + ".")}
        tensors = dict(file.tensors)
        self.factors = tensors.pop("rope_freqs.weight", 1.0)
        eps = "attention.layer_norm_epsilon" if arch == "olmo" else "attention.layer_norm_rms_epsilon"
        config = {"model_type": arch, "num_attention_heads": get["attention.head_count"], "hidden_size": get["embedding_length"],
                  "num_key_value_heads": get["attention.head_count_kv"], "num_hidden_layers": get["block_count"],
                  "head_dim": get["attention.key_length"], "rms_norm_eps": get[eps], "rope_theta": get["rope.freq_base"],
                  "tie_word_embeddings": "output.weight" not in tensors, "sliding_window": get.get("attention.sliding_window"),
                  "attn_logit_softcapping": get.get("attn_logit_softcapping"),
                  "final_logit_softcapping": get.get("final_logit_softcapping")}
        assert get["rope.dimension_count"] == get["attention.value_length"] == get["attention.key_length"]
        assert get.get("rope.scaling.type") in (None, "linear")
        self.slower = get.get("rope.scaling.factor", 1.0)
        super().__init__(config, renamed(tensors, ENDS, "model.layers.", {
            **LAYER, **(GEMMA2 if arch == "gemma2" else {"ffn_norm": "post_attention_layernorm"})}))
        self.context, self.neighbours = get["context_length"], arch in ("llama", "olmo")
        assert len(tensors["token_embd.weight"]) == get["vocab_size"] == len(m["tokenizer.ggml.tokens"])
        assert all(len(tensors[f"blk.0.{name}.weight"]) == get["feed_forward_length"] for name in ("ffn_gate", "ffn_up"))

    def rms(self, x, name):
        return x / np.sqrt((x ** 2).mean(-1, keepdims=True) + self.c["rms_norm_eps"]) * self.tensors[name + ".weight"]

    def frequencies(self):
        return super().frequencies() / self.factors / self.slower

    def rotated(self, x):
        if not self.neighbours:
            return super().rotated(x)
        turned = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * np.outer(np.arange(x.shape[1]), self.frequencies()))
        return np.stack([turned.real, turned.imag], -1).reshape(x.shape)


class LlamaCppGpt2(Gpt2):
    def __init__(self, file):
        get = {key.removeprefix("gpt2."): value for key, value in file.metadata.items()}
        config = {"layer_norm_epsilon": get["attention.layer_norm_epsilon"], "n_layer": get["block_count"],
                  "n_head": get["attention.head_count"]}
        self.context = get["context_length"]
        tensors = renamed(file.tensors, GPT2_ENDS, "h.", GPT2)
        matrices = (".attn.c_attn.weight", ".c_proj.weight", ".c_fc.weight")
        super().__init__(config, {name: values.T if name.endswith(matrices) else values for name, values in tensors.items()})


def read_model(path):
    file = File(path)
    return (LlamaCppGpt2 if file.metadata["general.architecture"] == "gpt2" else LlamaCpp)(file)
