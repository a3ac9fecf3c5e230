"""python -m cautious.bench: a step of cautious.torch.AdamW beside torch.optim.AdamW, beside CWD written in torch operations,
as one would by hand, and beside the memory traffic that no AdamW can do without. Runs of all are interleaved, medians are
shown, and ratios are of runs of the same round, so that a busy machine disturbs all alike. One thread is measured in processor
time, several in wall time. Nothing here is a test."""
from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from typing import Any, Callable, Dict, List, Sequence, Tuple

import torch

from . import __version__
from .torch import AdamW

Shape = Tuple[int, ...]
BETAS, EPS, LR, WD = (0.9, 0.999), 1e-8, 1e-3, 0.1


def gpt2_small() -> List[Shape]:
    """The 148 tensors of GPT-2 small, 124 million parameters."""
    block: List[Shape] = [(768,), (768,), (2304, 768), (2304,), (768, 768), (768,), (768,), (768,), (3072, 768), (3072,),
                          (768, 3072), (768,)]
    return [(50257, 768), (1024, 768), *(block * 12), (768,), (768,)]


CASES: Dict[str, Tuple[str, Callable[[], List[Shape]]]] = {
    "flat": ("1 tensor of 10^7", lambda: [(10_000_000,)]),
    "gpt2": ("148 tensors of GPT-2 small", gpt2_small),
    "small": ("1000 tensors of 160", lambda: [(160,)] * 1000),
}


class ByHand:
    """AdamW with cautious weight decay, one torch operation after the other."""

    def __init__(self, params: Sequence[torch.Tensor]):
        self.params, self.t = params, 0
        self.m = [torch.zeros_like(p) for p in params]
        self.v = [torch.zeros_like(p) for p in params]

    @torch.no_grad()
    def step(self) -> None:
        self.t += 1
        c1, c2 = 1 - BETAS[0] ** self.t, 1 - BETAS[1] ** self.t
        for p, m, v in zip(self.params, self.m, self.v):
            g = p.grad
            m.mul_(BETAS[0]).add_(g, alpha=1 - BETAS[0])
            v.mul_(BETAS[1]).addcmul_(g, g, value=1 - BETAS[1])
            u = (m / c1) / ((v / c2).sqrt() + EPS)
            mask = (u * p >= 0).to(p.dtype)
            p.sub_(LR * (u + WD * mask * p))


class SameBytes:
    """What every AdamW must do to the memory and no more: reads x, g, m and v, writes x, m and v, once and in place."""

    def __init__(self, params: Sequence[torch.Tensor]):
        self.streams = [(p, torch.zeros_like(p), torch.zeros_like(p)) for p in params]

    @torch.no_grad()
    def step(self) -> None:
        for p, m, v in self.streams:
            p.add_(p.grad, alpha=1e-30)
            m.mul_(BETAS[0])
            v.mul_(BETAS[1])


def peers(params: Sequence[torch.Tensor]) -> Dict[str, Any]:
    own = dict(lr=LR, betas=BETAS, eps=EPS, weight_decay=WD)
    return {"cautious": AdamW(params, **own), "torch for": torch.optim.AdamW(params, **own, foreach=False),
            "torch foreach": torch.optim.AdamW(params, **own, foreach=True), "CWD by hand": ByHand(params),
            "the same bytes": SameBytes(params)}


def parameters(shapes: Sequence[Shape]) -> List[torch.Tensor]:
    params = [torch.nn.Parameter(torch.full(shape, 0.1)) for shape in shapes]
    for p in params:
        p.grad = torch.full_like(p, 0.01)
    return params


def seconds(step: Callable[[], Any], repeats: int, clock: Callable[[], float] = time.perf_counter) -> float:
    begun = clock()
    for _ in range(repeats):
        step()
    return (clock() - begun) / repeats


def compare(shapes: Sequence[Shape], rounds: int, clock: Callable[[], float]) -> Dict[str, List[float]]:
    """Seconds per step of every optimizer in every round."""
    known = peers(parameters(shapes))
    repeats = {name: max(1, int(0.02 / min(seconds(each.step, 1) for _ in range(2)))) for name, each in known.items()}
    times: Dict[str, List[float]] = {name: [] for name in known}
    for _ in range(rounds):
        for name, each in known.items():
            times[name].append(seconds(each.step, repeats[name], clock))
    return times


def overhead(rounds: int) -> Tuple[float, float]:
    """Microseconds of processor time per call, with one parameter of one number, and what every further one adds."""
    torch.set_num_threads(1)
    one, many = AdamW(parameters([(1,)])), AdamW(parameters([(1,)] * 1001))
    pairs = [(seconds(one.step, 200, time.thread_time), seconds(many.step, 5, time.thread_time)) for _ in range(rounds + 1)][1:]
    return (1e6 * statistics.median(a for a, _ in pairs), 1e6 * statistics.median((b - a) / 1000 for a, b in pairs))


def measured(names: Sequence[str], threads: int, rounds: int) -> Dict[str, Any]:
    torch.set_num_threads(threads)
    rows = []
    for name in names:
        title, shapes = CASES[name][0], CASES[name][1]()
        count = sum(torch.Size(shape).numel() for shape in shapes)
        times = compare(shapes, rounds, time.process_time if threads == 1 else time.perf_counter)
        for peer, values in times.items():
            rows.append({"case": name, "title": title, "optimizer": peer, "parameters": count, "tensors": len(shapes),
                         "ns_per_parameter": 1e9 * statistics.median(values) / count,
                         "ms_per_step": 1e3 * statistics.median(values),
                         "ratio": statistics.median(b / a for a, b in zip(times["cautious"], values))})
    call, tensor = overhead(4 * rounds)
    return {"cautious": __version__, "torch": torch.__version__, "threads": threads, "cores": os.cpu_count(), "rounds": rounds,
            "load": os.getloadavg()[0], "rows": rows, "us_per_call": call, "us_per_tensor": tensor}


def shown(found: Dict[str, Any]) -> str:
    lines = [f"torch {found['torch']}, {found['threads']} of {found['cores']} threads, {found['rounds']} rounds, "
             f"load {found['load']:.1f}"]
    for row in found["rows"]:
        if row["optimizer"] == "cautious":
            lines.append(f"{row['title']}{'':{28 - len(row['title'])}}  ns/parameter   ms/step   x cautious")
        lines.append(f"  {row['optimizer']:<26}  {row['ns_per_parameter']:12.3f} {row['ms_per_step']:9.3f} "
                     f"{row['ratio']:12.1f}")
    lines.append(f"a call takes {found['us_per_call']:.1f} us and {found['us_per_tensor']:.2f} us per tensor")
    if found["load"] > found["cores"]:
        lines.append("the machine is busy: all times are too long")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m cautious.bench",
                                     description="A step of AdamW with cautious decay beside PyTorch's.")
    parser.add_argument("--case", choices=sorted(CASES), action="append", help="these only; gpt2 takes 7 GB of memory (all)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="(torch's default, %(default)s)")
    parser.add_argument("--rounds", type=int, default=9, help="of which the median is shown (%(default)s)")
    parser.add_argument("--json", action="store_true", help="one object instead of a table")
    given = parser.parse_args(arguments)
    if given.threads < 1 or given.rounds < 1:
        parser.error("--threads and --rounds must be at least 1")
    found = measured(given.case or list(CASES), given.threads, given.rounds)
    print(json.dumps(found) if given.json else shown(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
