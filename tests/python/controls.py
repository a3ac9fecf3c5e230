"""A small training loop for the tests of controls in cautious.compare, and what it recorded."""
import contextlib
import io
import json
import pathlib
import struct
import tempfile
import unittest

import torch

import cautious
from cautious.compared import TRACE

STEPS = 12


def model(names=("a", "b"), width=24):
    layers = torch.nn.Module()
    for name in names:
        setattr(layers, name, torch.nn.Linear(width, width))
    layers.table = torch.nn.Embedding(width, width)
    return layers


def gradients(layers, generator):
    """Not those of a loss: they mostly point away from the weights, so that few coordinates are CWD's."""
    for weight in layers.parameters():
        noise = torch.randn(weight.shape, generator=generator).to(weight)
        weight.grad = (weight.std(unbiased=False) * noise - weight).detach()


def trace(directory):
    """Names, then densities and budgets as [step, tensor], read as the header of decay_trace.h says."""
    head, body = (pathlib.Path(directory) / TRACE).read_bytes().split(b"\n", 1)
    names = json.loads(head)["tensors"]
    count = len(names)
    records = [struct.unpack(f"<{count}f{count}d", body[at:at + 12 * count]) for at in range(0, len(body), 12 * count or 1)]
    return names, torch.tensor([r[:count] for r in records]), torch.tensor([r[count:] for r in records], dtype=torch.float64)


class Study(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.out = pathlib.Path(self.folder.name) / "study"
        self.steps = {}  # of each run: tallies by tensor, step by step

    def tearDown(self):
        self.folder.cleanup()

    def train(self, optimizer, seed, parameters=lambda layers: layers, *, steps=STEPS, names=("a", "b"),
              dtype=torch.float32, before=lambda step, layers, made: None, **options):
        """`before` is called between the gradients and the step."""
        generator = torch.Generator().manual_seed(seed)
        torch.manual_seed(seed)
        layers = model(names).to(dtype)
        made = optimizer(parameters(layers), **options)
        found = self.steps[optimizer.arm, seed] = []
        for step in range(steps):
            gradients(layers, generator)
            before(step, layers, made)
            made.step()
            if not made.report().skipped:
                found.append(made.report().tensors)
        return self.loss(optimizer, seed)

    @staticmethod
    def loss(optimizer, seed):
        """CWD is best at the middle of its grid."""
        return 2 + 0.01 * seed % 7 + abs(optimizer.weight_decay - 1) * 0.01

    def compare(self, train, **arguments):
        with contextlib.redirect_stderr(io.StringIO()):
            return cautious.compare(train, **{**dict(lr=0.01, lambdas=[0.2, 0.4, 0.8], seeds=2, tune_seeds=1, out=self.out,
                                                     quiet=True), **arguments})

    def failures(self):
        return {file.parent.name.split("_")[0]: file.read_text() for file in self.out.glob("runs/*/failure.txt")}

    def run_of(self, arm, seed=0):
        [found] = self.out.glob(f"runs/{arm}_*_seed={seed}_*")
        return found
