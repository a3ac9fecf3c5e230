from typing import List, Optional, Sequence, Tuple

class Run:
    folder: str
    directory: str
    arm: str
    recipe: str
    lr: float
    rest: str
    rest_lr: float
    decay: str
    weight_decay: float
    seed: int
    decay_trace: bool
    density_from: str
    budget_from: str

class DecayTraceWriter:
    def __init__(self, directory: str, tensors: List[str], last_step: int) -> None: ...
    def add(self, tensors: Sequence[Tuple[int, int, float]]) -> None: ...  # count, decayed, budget

class ReferenceRun:
    def __init__(self, what: str, directory: str, tensors: List[str]) -> None: ...  # "density" or "budget"
    def follow(self, step: int, tensors: Sequence[Tuple[float, float]]) -> Tuple[List[float], List[float]]: ...

class Conclusion:
    text: str
    answers: List[str]
    notes: List[str]
    report: str

class Study:
    done: int
    failed: int
    def __init__(self, *, out: str, recipe: str, lr: List[float], lambdas: List[float], seeds: int, tune_seeds: int,
                 objective: str, unit: str, target: float) -> None: ...
    def next(self) -> Optional[Run]: ...
    @property
    def waits(self) -> bool: ...
    def finish(self, objective: float, decay_budget: float) -> None: ...
    def fail(self, why: str, log: str) -> None: ...
    def progress(self) -> str: ...
    def conclude(self) -> Conclusion: ...
