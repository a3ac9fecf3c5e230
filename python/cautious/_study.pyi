from typing import List, Optional

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
