"""Cautious weight decay in timm by name: after register(), create_optimizer_v2(model, "cwdadamw", ...) knows it.

    python3 examples/python/timm_factory.py

timm's own cadamw, clion, ... mask the update, which is another paper. A name must not contain "_": it is a prefix to timm.
What was run: this file with torch 1.13 on a CPU and a stand-in for the names of timm used here (tests/python/stubs); timm
itself could not be had, so it is untested with it.
"""
import timm
import torch
from timm.optim import OptimInfo, create_optimizer_v2
from timm.optim._optim_factory import default_registry  # as in timm 1.0.26; not public, so it may move

import cautious.torch


def register():
    """Decay of biases and norms is switched off by timm itself (filter_bias_and_bn), through the groups that it makes."""
    default_registry.register(OptimInfo(name="cwdadamw", opt_class=cautious.torch.AdamW, has_betas=True,
                                        description="AdamW with cautious weight decay", defaults={"decay": "cautious"}))
    default_registry.register(OptimInfo(name="cwdlion", opt_class=cautious.torch.Lion, has_eps=False, has_betas=True,
                                        description="Lion with cautious weight decay", defaults={"decay": "cautious"}))


def main():
    register()
    torch.manual_seed(0)
    images, classes = torch.randn(64, 3, 32, 32), torch.randint(10, (64,))
    for name, lr in (("cwdadamw", 3e-3), ("cwdlion", 1e-3)):
        model = timm.create_model("resnet10t", num_classes=10)
        optimizer = create_optimizer_v2(model, name, lr=lr, weight_decay=0.05)
        for step in range(30):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images), classes)
            loss.backward()
            optimizer.step()
            if step in (0, 29):
                print(f"{name}  step {step + 1}  loss {loss:.3f}")


if __name__ == "__main__":
    main()
