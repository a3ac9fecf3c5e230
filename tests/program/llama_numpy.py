"""The Llama forward pass in numpy, float64, from its published definition: an oracle that shares nothing with the program.

    llama_numpy.py CHECKPOINT < ids

CHECKPOINT is a folder with config.json and model.safetensors. Every line of the input is a window of token ids; each id but the
first is predicted from those before it in its line. Prints the mean loss in nats.
"""
import json
import struct
import sys
from pathlib import Path

import numpy as np


def read_safetensors(path):
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    tensors = {}
    for name, info in json.loads(raw[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = info["data_offsets"]
        data = raw[8 + length + begin:8 + length + end]
        if info["dtype"] == "BF16":
            values = (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            values = np.frombuffer(data, {"F64": "<f8", "F32": "<f4", "F16": "<f2"}[info["dtype"]])
        tensors[name] = values.reshape(info["shape"]).astype(np.float64)
    return tensors


class Llama:
    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text())
        self.tensors = read_safetensors(folder / "model.safetensors")
        c = self.config
        assert c["architectures"] == ["LlamaForCausalLM"] and c["hidden_act"] == "silu", c
        self.heads, self.kv_heads = c["num_attention_heads"], c.get("num_key_value_heads", c["num_attention_heads"])
        self.head_dim = c.get("head_dim") or c["hidden_size"] // self.heads

    def linear(self, x, name):
        y = x @ self.tensors[name + ".weight"].T
        return y + self.tensors[name + ".bias"] if name + ".bias" in self.tensors else y

    def norm(self, x, name):
        return x / np.sqrt((x ** 2).mean(-1, keepdims=True) + self.config["rms_norm_eps"]) * self.tensors[name + ".weight"]

    def by_heads(self, x, heads):
        return x.reshape(len(x), heads, self.head_dim).transpose(1, 0, 2)

    def rotated(self, x):
        """q cos + rotate_half(q) sin, where rotate_half swaps the halves of a head and negates the new first one."""
        inverse = 1.0 / self.config["rope_theta"] ** (np.arange(0, self.head_dim, 2) / self.head_dim)
        angle = np.outer(np.arange(x.shape[1]), inverse)
        angle = np.concatenate([angle, angle], -1)
        first, second = np.split(x, 2, -1)
        return x * np.cos(angle) + np.concatenate([-second, first], -1) * np.sin(angle)

    def attention(self, x, name):
        q = self.rotated(self.by_heads(self.linear(x, name + "q_proj"), self.heads))
        k = self.rotated(self.by_heads(self.linear(x, name + "k_proj"), self.kv_heads))
        v = self.by_heads(self.linear(x, name + "v_proj"), self.kv_heads)
        k, v = (np.repeat(each, self.heads // self.kv_heads, 0) for each in (k, v))
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(self.head_dim)
        scores[:, np.triu(np.ones(scores.shape[1:], bool), 1)] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return self.linear((weights @ v).transpose(1, 0, 2).reshape(len(x), -1), name + "o_proj")

    def mlp(self, x, name):
        gate = self.linear(x, name + "gate_proj")
        return self.linear(gate / (1 + np.exp(-gate)) * self.linear(x, name + "up_proj"), name + "down_proj")

    def logits(self, ids):
        x = self.tensors["model.embed_tokens.weight"][ids]
        for layer in range(self.config["num_hidden_layers"]):
            name = f"model.layers.{layer}."
            x = x + self.attention(self.norm(x, name + "input_layernorm"), name + "self_attn.")
            x = x + self.mlp(self.norm(x, name + "post_attention_layernorm"), name + "mlp.")
        tied = self.config["tie_word_embeddings"]
        return self.norm(x, "model.norm") @ self.tensors["model.embed_tokens.weight" if tied else "lm_head.weight"].T

    def losses(self, ids):
        logits = self.logits(ids[:-1])
        most = logits.max(-1, keepdims=True)
        total = np.log(np.exp(logits - most).sum(-1)) + most[:, 0]
        return total - logits[np.arange(len(logits)), ids[1:]]


def main():
    model = Llama(Path(sys.argv[1]))
    windows = [np.array(line.split(), int) for line in sys.stdin if line.strip()]
    print(repr(float(np.concatenate([model.losses(ids) for ids in windows]).mean())))


if __name__ == "__main__":
    main()
