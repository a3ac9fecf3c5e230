"""A stand-in for transformers, only to run examples/python/hf_trainer.py where it cannot be installed. It mirrors the interface
of transformers 4.46 as far as that example goes: names, arguments, and the order clip, step, schedule, zero_grad."""
import math
from dataclasses import dataclass, field
from typing import List

import torch


@dataclass
class TrainingArguments:
    output_dir: str
    max_steps: int = -1
    per_device_train_batch_size: int = 8
    max_grad_norm: float = 1.0
    save_strategy: str = "steps"
    report_to: List[str] = field(default_factory=list)
    disable_tqdm: bool = False
    use_cpu: bool = False


def get_cosine_schedule_with_warmup(optimizer, num_warmup_steps, num_training_steps, num_cycles=0.5, last_epoch=-1):
    def factor(step):
        if step < num_warmup_steps:
            return step / max(1, num_warmup_steps)
        progress = (step - num_warmup_steps) / max(1, num_training_steps - num_warmup_steps)
        return max(0.0, 0.5 * (1 + math.cos(2 * math.pi * num_cycles * progress)))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor, last_epoch)


class Trainer:
    def __init__(self, model, args, train_dataset, optimizers=(None, None)):
        self.model, self.args, self.train_dataset = model, args, train_dataset
        self.optimizer, self.lr_scheduler = optimizers
        if not isinstance(self.optimizer, torch.optim.Optimizer):
            raise TypeError("optimizers[0] is not a torch.optim.Optimizer")

    def train(self):
        loader = torch.utils.data.DataLoader(self.train_dataset, self.args.per_device_train_batch_size, shuffle=True)
        done = 0
        while done < self.args.max_steps:
            for batch in loader:
                self.model(**batch)["loss"].backward()
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.args.max_grad_norm)
                self.optimizer.step()
                self.lr_scheduler.step()
                self.model.zero_grad()
                done += 1
                if done == self.args.max_steps:
                    return
