"""Does cautious weight decay help in your own training loop? Plans, statistics and report are those of `cautious compare`
(docs/studies.md), in C++; here is the loop that calls your function."""
from __future__ import annotations

import math
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Sequence, Union

from . import compared

if TYPE_CHECKING:
    from . import _study


class Setup:
    """Makes the optimizer of one run, a cautious.torch.Optimizer: call it with a model, whose vectors do not decay, or
    with parameters or groups, which are taken as they are. Keywords are the optimizer's, and the same in every run."""

    def __init__(self, run: _study.Run):
        self.arm: str = run.arm              #: none, plain, cwd, shuffled, opposed, random, budget
        self.seed: int = run.seed
        self.recipe: str = run.recipe        #: "adam beta1=0.9 beta2=0.999 eps=1e-08 decay=cautious ... weight_decay=0.5"
        self.lr: float = run.lr
        self.rest: str = run.rest            #: of embeddings and vectors, where `recipe` is for matrices alone (muon)
        self.rest_lr: float = run.rest_lr
        self.decay: str = run.decay          #: that of `recipe`, as is the next
        self.weight_decay: float = run.weight_decay
        self.directory: str = run.directory  #: of the run, for files of your own
        self._run = run
        self._made: List[Any] = []

    def __call__(self, params: Any, **options: Any) -> Any:
        from torch import nn

        from .torch import Optimizer
        groups = self.groups(params) if isinstance(params, nn.Module) else params
        made = compared.compared(Optimizer)(groups, recipe=self.recipe, lr=self.lr, **{"seed": self.seed, **options})
        compared.attach(made, self._run, len(self._made))
        self._made.append(made)
        return made

    def groups(self, model: Any) -> List[Dict[str, Any]]:
        """The usual split of a model's parameters."""
        from torch import nn
        embeddings = {weight for module in model.modules() if isinstance(module, (nn.Embedding, nn.EmbeddingBag))
                      for weight in module.parameters()}
        rest = {"recipe": self.rest, "lr": self.rest_lr} if self.rest else {}
        matrices: Dict[str, Any] = {"params": []}
        others: Dict[str, Any] = {"params": [], **rest}
        vectors: Dict[str, Any] = {"params": [], **rest, "decay": "none"}
        for name, weight in model.named_parameters():
            if weight.requires_grad:
                group = vectors if weight.ndim < 2 else others if self.rest and weight in embeddings else matrices
                group["params"].append((name, weight))
        return [group for group in (matrices, others, vectors) if group["params"]]

    def finish(self) -> None:
        """After the run, which failed if this does."""
        compared.finish(self._made, self._run)

    def decay_budget(self) -> float:
        """What decay has removed in this run; NaN if it made no optimizer here."""
        return sum(made.decay_budget for made in self._made) if self._made else math.nan


class Verdict:
    """What a study says; print() shows all of it."""

    def __init__(self, conclusion: _study.Conclusion, failed: int):
        self.text: str = conclusion.text           #: a table of the arms, the answers and notes, and where the report is
        self.answers: List[str] = conclusion.answers  #: whether decay matters, then each prespecified difference
        self.notes: List[str] = conclusion.notes   #: what limits them
        self.report: str = conclusion.report       #: path of report.html
        self.failed: int = failed                  #: runs without a result; compare() again tries them again

    def __str__(self) -> str:
        return self.text.rstrip("\n")

    __repr__ = __str__


def number_of(result: Union[float, Dict[str, float]], objective: str) -> float:
    """What train returned, as a number."""
    if isinstance(result, dict):
        if objective not in result:
            raise KeyError(f"train returned a dict without {objective!r}, the objective; it has {sorted(map(str, result))}")
        result = result[objective]
    if result is None:
        raise TypeError(f"train returned None; return the {objective}, a number or a dict with it")
    return float(result)


def compare(train: Callable[[Setup, int], Union[float, Dict[str, float]]], *, recipe: str = "adamw",
            lr: Union[float, Sequence[float]], lambdas: Sequence[float], seeds: int = 8, tune_seeds: int = 2,
            out: str = "compare", objective: str = "loss", unit: str = "", target: float = 0.005,
            quiet: bool = False) -> Verdict:
    """Calls train(optimizer, seed) for every run of the comparison and says what they show.

    train makes its model and data from the seed alone, its optimizer by optimizer(model), and returns the objective, the lower
    the better, of data that it did not train on: a number, or a dict that has it by its name. A number that is not finite is a
    run that diverged. An exception is a run that failed: its traceback is in out/logs, and the others go on. The arms random
    and budget repeat what the CWD run of the same seed took from each tensor in each step, so all runs must have the same
    parameters and steps; they fail if the optimizer is not made by optimizer(...).

    recipe      what is compared, without decay and weight_decay, which the arms have
    lr          one learning rate, or several to choose from
    lambdas     weight decays to choose from, besides 0; CWD has 2.5 times as much
    seeds       that the arms are judged on; tune_seeds others choose lambda and lr first
    out         the directory of the study: the same call continues it, and finished runs are never made again; several
                processes that make the same call share the runs. It cannot see that train itself has changed; use another
                directory then
    objective, unit, target   its name, its unit, and the difference that matters to you: less is practically equal
    """
    from . import _study  # which loads more libraries than the optimizers need
    study = _study.Study(out=str(out), recipe=recipe, lr=list(lr) if hasattr(lr, "__iter__") else [lr], lambdas=list(lambdas),
                         seeds=seeds, tune_seeds=tune_seeds, objective=objective, unit=unit, target=target)
    last_error = None
    try:
        while (run := study.next()) or study.waits:
            if run is None:  # other processes are at work on the study, and may leave more to do
                time.sleep(1)
                continue
            setup = Setup(run)
            try:
                number = number_of(train(setup, run.seed), objective)
                setup.finish()
            except KeyboardInterrupt:
                print(f"cautious: interrupted; the same call continues the study in {out}", file=sys.stderr)
                raise
            except Exception as error:
                study.fail(f"{type(error).__name__}: {error}", traceback.format_exc())
                last_error = error.with_traceback(None)  # whose frames would keep the run's model
            else:
                study.finish(number, setup.decay_budget())
            if not quiet:
                print(study.progress(), file=sys.stderr, flush=True)
        if last_error and not study.done:
            raise RuntimeError(f"no run has a result, {study.failed} failed; tracebacks are in {out}/logs") from last_error
        return Verdict(study.conclude(), study.failed)
    finally:
        del study  # gives its directory back, even if someone keeps the exception and with it this frame
