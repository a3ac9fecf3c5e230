"""Language models in numpy, float64, from the families' published definitions: oracles that share nothing with the program. A
model is a folder of Hugging Face (config.json, model.safetensors or its shards) or a file of llama2.c. And a writer of
safetensors, for models of others."""
import json
import struct

import numpy as np

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


def read_safetensors(path):
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    tensors = {}
    for name, info in json.loads(raw[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = info["data_offsets"]
        values = np.frombuffer(raw[8 + length + begin:8 + length + end], TYPES[info["dtype"]])
        if info["dtype"] == "BF16":
            values = (values.astype(np.uint32) << 16).view(np.float32)
        tensors[name] = values.reshape(info["shape"]).astype(np.float64)
    return tensors


def write_safetensors(path, tensors, dtype="F32"):
    """A BF16 is a float32 without its lower half."""
    header, parts, at = {}, [], 0
    for name, values in tensors.items():
        if dtype == "BF16":
            data = (np.ascontiguousarray(values, "<f4").view(np.uint32) >> 16).astype("<u2").tobytes()
        else:
            data = np.ascontiguousarray(values).astype(TYPES[dtype]).tobytes()
        header[name] = {"dtype": dtype, "shape": list(values.shape), "data_offsets": [at, at + len(data)]}
        parts.append(data)
        at += len(data)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def softmax(x):
    weights = np.exp(x - x.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


def silu(x):
    return x / (1 + np.exp(-x))


def capped(x, cap):
    return cap * np.tanh(x / cap) if cap else x


class Model:
    """What all have in common: causal attention and the loss."""

    def attend(self, q, k, v, scale, window=None, cap=None):
        """Of [heads, tokens, size] each; keys and values may have fewer heads."""
        k, v = (np.repeat(each, len(q) // len(each), 0) for each in (k, v))
        scores = capped(q @ k.transpose(0, 2, 1) * scale, cap)
        distance = np.subtract.outer(np.arange(q.shape[1]), np.arange(q.shape[1]))
        scores[:, (distance < 0) | (distance >= (window or np.inf))] = -np.inf
        return (softmax(scores) @ v).transpose(1, 0, 2).reshape(q.shape[1], -1)

    def losses(self, ids):
        """Of every id but the first, each predicted from those before it."""
        logits = self.logits(ids[:-1])
        most = logits.max(-1, keepdims=True)
        total = np.log(np.exp(logits - most).sum(-1)) + most[:, 0]
        return total - logits[np.arange(len(logits)), ids[1:]]

    def loss(self, ids, context):
        """Windows of the context side by side, as `cautious eval` takes them."""
        ids = np.asarray(ids)
        length = min(context, len(ids) - 1)
        windows = [ids[at:at + length + 1] for at in range(0, (len(ids) - 1) // length * length, length)]
        return float(np.concatenate([self.losses(window) for window in windows]).mean())


def by_heads(x, heads):
    return x.reshape(len(x), heads, -1).transpose(1, 0, 2)


class Rotary(Model):
    """Llama, Mistral, Qwen2, Qwen3, OLMo, Gemma, Gemma 2."""

    def __init__(self, config, tensors):
        self.c, self.tensors, self.family = config, tensors, config["model_type"]
        self.gemma = self.family.startswith("gemma")
        self.heads = config["num_attention_heads"]
        self.size = config.get("head_dim") or config["hidden_size"] // self.heads

    def linear(self, x, name):
        y = x @ self.tensors[name + ".weight"].T
        return y + self.tensors[name + ".bias"] if name + ".bias" in self.tensors else y

    def rms(self, x, name):
        return x / np.sqrt((x ** 2).mean(-1, keepdims=True) + self.c["rms_norm_eps"]) * (
            self.tensors[name + ".weight"] + (1 if self.gemma else 0))

    def norm(self, x, name):
        if self.family != "olmo":
            return self.rms(x, name)
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)

    def frequencies(self):
        inverse = 1.0 / self.c["rope_theta"] ** (np.arange(0, self.size, 2) / self.size)
        scaling = self.c.get("rope_scaling")
        if not scaling:
            return inverse
        slow = inverse / scaling["factor"]
        if scaling.get("rope_type", scaling.get("type")) == "linear":
            return slow
        length, low, high = (scaling[key] for key in ("original_max_position_embeddings", "low_freq_factor", "high_freq_factor"))
        wave = 2 * np.pi / inverse
        smooth = (length / wave - low) / (high - low)
        between = (1 - smooth) * slow + smooth * inverse
        return np.where(wave < length / high, inverse, np.where(wave > length / low, slow, between))

    def rotated(self, x):
        """q cos + rotate_half(q) sin, where rotate_half swaps the halves of a head and negates the new first one."""
        angle = np.outer(np.arange(x.shape[1]), self.frequencies())
        angle = np.concatenate([angle, angle], -1)
        first, second = np.split(x, 2, -1)
        return x * np.cos(angle) + np.concatenate([-second, first], -1) * np.sin(angle)

    def window(self, layer):
        window = self.c.get("sliding_window")
        if self.family == "mistral" or (self.family == "gemma2" and layer % 2 == 0):
            return window
        return window if self.c.get("use_sliding_window") and layer >= self.c["max_window_layers"] else None

    def attention(self, x, name, layer):
        q = by_heads(self.linear(x, name + "q_proj"), self.heads)
        k = by_heads(self.linear(x, name + "k_proj"), self.c["num_key_value_heads"])
        if self.family == "qwen3":
            q, k = self.rms(q, name + "q_norm"), self.rms(k, name + "k_norm")
        v = by_heads(self.linear(x, name + "v_proj"), self.c["num_key_value_heads"])
        scale = self.c.get("query_pre_attn_scalar", self.size) ** -0.5
        y = self.attend(self.rotated(q), self.rotated(k), v, scale, self.window(layer), self.c.get("attn_logit_softcapping"))
        return self.linear(y, name + "o_proj")

    def mlp(self, x, name):
        act = gelu if self.gemma else silu
        return self.linear(act(self.linear(x, name + "gate_proj")) * self.linear(x, name + "up_proj"), name + "down_proj")

    def logits(self, ids):
        embedding = self.tensors["model.embed_tokens.weight"]
        x = embedding[ids] * (np.sqrt(self.c["hidden_size"]) if self.gemma else 1)
        for layer in range(self.c["num_hidden_layers"]):
            name = f"model.layers.{layer}."
            y = self.attention(self.norm(x, name + "input_layernorm"), name + "self_attn.", layer)
            if self.family == "gemma2":
                x = x + self.norm(y, name + "post_attention_layernorm")
                y = self.mlp(self.norm(x, name + "pre_feedforward_layernorm"), name + "mlp.")
                x = x + self.norm(y, name + "post_feedforward_layernorm")
            else:
                x = x + y
                x = x + self.mlp(self.norm(x, name + "post_attention_layernorm"), name + "mlp.")
        tied = self.c.get("tie_word_embeddings", self.gemma)
        output = embedding if tied else self.tensors["lm_head.weight"]
        return capped(self.norm(x, "model.norm") @ output.T, self.c.get("final_logit_softcapping"))


class Gpt2(Model):
    def __init__(self, config, tensors):
        self.c, self.t = config, {name.removeprefix("transformer."): values for name, values in tensors.items()}

    def norm(self, x, name):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + self.c["layer_norm_epsilon"])
        return x * self.t[name + ".weight"] + self.t[name + ".bias"]

    def conv1d(self, x, name):
        return x @ self.t[name + ".weight"] + self.t[name + ".bias"]

    def logits(self, ids):
        x = self.t["wte.weight"][ids] + self.t["wpe.weight"][:len(ids)]
        for layer in range(self.c["n_layer"]):
            name = f"h.{layer}."
            q, k, v = (by_heads(part, self.c["n_head"])
                       for part in np.split(self.conv1d(self.norm(x, name + "ln_1"), name + "attn.c_attn"), 3, -1))
            x = x + self.conv1d(self.attend(q, k, v, q.shape[-1] ** -0.5), name + "attn.c_proj")
            x = x + self.conv1d(gelu(self.conv1d(self.norm(x, name + "ln_2"), name + "mlp.c_fc")), name + "mlp.c_proj")
        return self.norm(x, "ln_f") @ self.t["wte.weight"].T


class Llama2c(Model):
    """Neighbours are rotated, as complex numbers."""

    def __init__(self, path):
        raw = path.read_bytes()
        mark, version = struct.unpack("<Ii", raw[:8])
        new = mark == 0x616b3432 and version == 1
        numbers = struct.unpack("<7i", raw[8:36] if new else raw[:28])
        self.width, hidden, self.layers, self.heads, self.kv_heads, vocab, self.context = numbers
        shared, vocab = (raw[36] == 1 if new else vocab > 0), abs(vocab)
        data, at = np.frombuffer(raw[256 if new else 28:], "<f4"), 0

        def take(*shape):
            nonlocal at
            at += int(np.prod(shape))
            return data[at - int(np.prod(shape)):at].reshape(shape).astype(np.float64)

        n, d, kv = self.layers, self.width, self.width // self.heads * self.kv_heads
        if new:
            self.norm1, self.norm2, self.last, self.embedding = take(n, d), take(n, d), take(d), take(vocab, d)
        else:
            self.embedding, self.norm1 = take(vocab, d), take(n, d)
        self.q, self.k, self.v, self.o = take(n, d, d), take(n, kv, d), take(n, kv, d), take(n, d, d)
        if not new:
            self.norm2 = take(n, d)
        self.w1, self.w2, self.w3 = take(n, hidden, d), take(n, d, hidden), take(n, hidden, d)
        if not new:
            self.last = take(d)
            at += self.context * (d // self.heads)
        self.output = self.embedding if shared else take(vocab, d)
        assert at == len(data), (at, len(data))

    def norm(self, x, scale):
        return x / np.sqrt((x ** 2).mean(-1, keepdims=True) + 1e-5) * scale

    def rotated(self, x):
        size = x.shape[-1]
        angle = np.outer(np.arange(x.shape[1]), 10000.0 ** -(np.arange(0, size, 2) / size))
        turned = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)
        return np.stack([turned.real, turned.imag], -1).reshape(x.shape)

    def logits(self, ids):
        x = self.embedding[ids]
        for n in range(self.layers):
            y = self.norm(x, self.norm1[n])
            q, k = (self.rotated(by_heads(y @ w.T, heads)) for w, heads in ((self.q[n], self.heads), (self.k[n], self.kv_heads)))
            x = x + self.attend(q, k, by_heads(y @ self.v[n].T, self.kv_heads), q.shape[-1] ** -0.5) @ self.o[n].T
            y = self.norm(x, self.norm2[n])
            x = x + (silu(y @ self.w1[n].T) * (y @ self.w3[n].T)) @ self.w2[n].T
        return self.norm(x, self.last) @ self.output.T


def read_model(path):
    if path.is_file():
        return Llama2c(path)
    config, index = json.loads((path / "config.json").read_text()), path / "model.safetensors.index.json"
    files = set(json.loads(index.read_text())["weight_map"].values()) if index.exists() else {"model.safetensors"}
    tensors = {name: values for file in files for name, values in read_safetensors(path / file).items()}
    return (Gpt2 if config["model_type"] == "gpt2" else Rotary)(config, tensors)
