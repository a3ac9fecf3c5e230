"""Record a gradient trace in PyTorch, to replay it with `cautious replay` and compare.

    recorder = Recorder(model.weight)        # before the first step
    loss.backward(); recorder.step(lr)       # after every backward pass and before optimizer.step()
    recorder.save("trace.safetensors")

Run as a program, it records 100 steps of torch.optim.AdamW on a small regression and saves the weight that PyTorch arrived at
beside the trace, as the tensor `final`:

    python3 examples/record_trace.py trace.safetensors
    cautious replay trace.safetensors --optimizer adamw --weight_decay 0.1 --out out.safetensors
"""
import json
import struct
import sys

import torch

TYPES = {torch.float64: "F64", torch.float32: "F32", torch.bfloat16: "BF16"}


class Recorder:
    def __init__(self, parameter):
        self.parameter, self.x, self.g, self.lr = parameter, parameter.detach().clone(), [], []

    def step(self, lr):
        self.g.append(self.parameter.grad.detach().clone())
        self.lr.append(lr)

    def save(self, path, **others):
        tensors = {"lr": torch.tensor(self.lr, dtype=torch.float64), "x": self.x, "g": torch.stack(self.g), **others}
        header, data = {}, b""
        for name, tensor in tensors.items():
            raw = tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()
            header[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
            data += raw
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + data)


def main(path):
    torch.manual_seed(0)
    inputs, targets = torch.randn(256, 20), torch.randn(256, 5)
    model = torch.nn.Linear(20, 5, bias=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
    recorder = Recorder(model.weight)
    for _ in range(100):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        recorder.step(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    recorder.save(path, final=model.weight)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: record_trace.py TRACE.safetensors")
    main(sys.argv[1])
