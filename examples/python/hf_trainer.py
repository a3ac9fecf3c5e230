"""Cautious weight decay in Hugging Face's Trainer: pass (optimizer, scheduler) and leave the rest to it.

    python3 examples/python/hf_trainer.py

Trainer then ignores its own optim, learning_rate, weight_decay and lr_scheduler_type; max_grad_norm, gradient accumulation,
logging and checkpoints are as ever. What was run: this file with torch 1.13 on a CPU and a stand-in for the three names of
transformers used here (tests/python/stubs); transformers itself could not be had, so it is untested with it.
"""
import tempfile

import torch
from torch import nn
from transformers import Trainer, TrainingArguments, get_cosine_schedule_with_warmup

import cautious.torch


def cautious_adamw(model, lr, weight_decay, warmup, steps, betas=(0.9, 0.999)):
    """What Trainer's `optimizers` takes. Biases and norms do not decay."""
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    groups = [{"params": [p for _, p in trained if p.dim() >= 2], "weight_decay": weight_decay},
              {"params": [p for _, p in trained if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = cautious.torch.AdamW(groups, lr=lr, betas=betas, decay="cautious")
    return optimizer, get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=warmup, num_training_steps=steps)


class Classifier(nn.Module):
    """Any model that returns its loss will do."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, inputs, labels):
        logits = self.layers(inputs)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def main():
    torch.manual_seed(0)
    inputs = torch.randn(512, 8)
    rows = [{"inputs": x, "labels": (x[0] * x[1] > 0).long()} for x in inputs]
    model = Classifier()
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(output_dir=folder, max_steps=150, per_device_train_batch_size=32, max_grad_norm=1.0,
                                      save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True)
        trainer = Trainer(model=model, args=arguments, train_dataset=rows,
                          optimizers=cautious_adamw(model, lr=1e-2, weight_decay=0.1, warmup=10, steps=arguments.max_steps))
        trainer.train()
    with torch.no_grad():
        right = (model.layers(inputs).argmax(1) == (inputs[:, 0] * inputs[:, 1] > 0)).float().mean()
    print(f"accuracy {right:.3f}")


if __name__ == "__main__":
    main()
