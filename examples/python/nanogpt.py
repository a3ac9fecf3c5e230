"""Cautious weight decay in nanoGPT: a configure_optimizers() in place of its own, with AdamW or with Muon.

In train.py, after `from model import GPTConfig, GPT`:

    import nanogpt
    GPT.configure_optimizers = nanogpt.configure_optimizers          # or nanogpt.configure_muon

Nothing else changes: train.py writes lr into param_groups, clips gradients itself, and saves and loads state_dict().
What was run: this file, as a program, with torch 1.13 on a CPU; it trains a model of nanoGPT's parameter names. nanoGPT itself
could not be had.
"""
import torch
from torch import nn

import cautious.torch


def configure_optimizers(self, weight_decay, learning_rate, betas, device_type):
    """nanoGPT's arguments and split: what has two sides decays, biases and norms do not."""
    named = [(name, p) for name, p in self.named_parameters() if p.requires_grad]
    groups = [{"params": [p for _, p in named if p.dim() >= 2], "weight_decay": weight_decay},
              {"params": [p for _, p in named if p.dim() < 2], "weight_decay": 0.0}]
    return cautious.torch.AdamW(groups, lr=learning_rate, betas=betas, decay="cautious")


def configure_muon(self, weight_decay, learning_rate, betas, device_type):
    """Muon for the matrices inside the blocks, AdamW for embeddings, output, biases and norms. scale=rms gives Muon's direction
    the size of AdamW's, so that one learning rate serves both: train.py writes the same lr into all groups."""
    return cautious.torch.Muon(self.named_parameters(), lr=learning_rate, weight_decay=weight_decay, decay="cautious",
                               scale="rms", rest_names=("*wte*", "*wpe*", "lm_head*"), rest_lr=learning_rate)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        ahead = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        y = self.ln_1(x)
        x = x + self.attn(y, y, y, attn_mask=ahead, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))


class Tiny(nn.Module):
    """A decoder with nanoGPT's names for what matters here: wte, wpe, lm_head."""

    def __init__(self, vocabulary=64, length=32, width=32):
        super().__init__()
        self.transformer = nn.ModuleDict({"wte": nn.Embedding(vocabulary, width), "wpe": nn.Embedding(length, width),
                                          "h": nn.ModuleList([Block(width, 2) for _ in range(2)]), "ln_f": nn.LayerNorm(width)})
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.transformer["wte"].weight = self.lm_head.weight

    def forward(self, tokens):
        x = self.transformer["wte"](tokens) + self.transformer["wpe"](torch.arange(tokens.shape[1]))
        for block in self.transformer["h"]:
            x = block(x)
        return self.lm_head(self.transformer["ln_f"](x))


def main():
    text = torch.tensor([ord(c) % 64 for c in "decay only where update and weight agree in sign; " * 40])
    for configure in (configure_optimizers, configure_muon):
        torch.manual_seed(0)
        model = Tiny()
        optimizer = configure(model, weight_decay=0.1, learning_rate=1e-2, betas=(0.9, 0.95), device_type="cpu")
        for step in range(60):
            for group in optimizer.param_groups:
                group["lr"] = 1e-2 * min(1, (step + 1) / 10)
            starts = torch.randint(len(text) - 33, (8,))
            rows = torch.stack([text[start:start + 33] for start in starts])
            loss = nn.functional.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            if step in (0, 59):
                print(f"{configure.__name__}  step {step + 1}  loss {loss:.3f}")


if __name__ == "__main__":
    main()
