"""The optimizers of a run of cautious.compare: they add up what decay removes, and record it where a control will repeat it, or
repeat what another run recorded. Files and arithmetic are those of C++ (run/decay_trace.h, run/reference_run.h)."""
from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

if TYPE_CHECKING:
    from . import _study

TRACE = "decay_trace.bin"


def folder(directory: str, number: int) -> str:
    """Where the trace of a run's optimizer is; they count from 0 in the order in which they are made."""
    return os.path.join(directory, f"optimizer-{number + 1}") if number else directory


def count_traces(directory: str) -> int:
    count = 0
    while os.path.exists(os.path.join(folder(directory, count), TRACE)):
        count += 1
    return count


class Record:
    """Writes the trace of an optimizer. A run never fails because of it: where steps or parameters are not one sequence, the
    trace is left without tensors, and the controls say so."""

    def __init__(self, directory: str):
        os.makedirs(directory, exist_ok=True)
        self._directory = directory
        self._names: List[str] = []
        self._next = 0  # step; 0: none yet
        self._writer: Optional[_study.DecayTraceWriter] = None

    def add(self, step: int, report: Any) -> None:
        tensors = report.tensors
        if step != self._next:  # the first step, or one after a state was loaded
            self._begin(step, list(tensors))
        elif list(tensors) != self._names:
            self._give_up()
        self._next = step + 1
        if self._writer is not None:
            self._writer.add([(tally.count, tally.decayed, tally.budget) for tally in tensors.values()])

    def end(self, names: List[str]) -> None:
        """Of the run. An optimizer that was never stepped has a trace without steps."""
        if self._next == 0:
            self._begin(1, names)

    def _begin(self, step: int, names: List[str]) -> None:
        from . import _study
        self._names = names
        try:
            self._writer = _study.DecayTraceWriter(self._directory, names, step - 1)
        except RuntimeError:  # what is there does not reach this step, or is of other parameters
            self._give_up()

    def _give_up(self) -> None:
        from . import _study
        _study.DecayTraceWriter(self._directory, [], 0)
        self._writer = None


class Follow:
    """What a control's optimizer has to decay. Groups with a decay of their own, which no arm changes, are left alone."""

    def __init__(self, what: str, directory: str):
        self._what, self._directory = what, directory
        self._names: List[str] = []
        self._reference: Optional[_study.ReferenceRun] = None

    def amounts(self, step: int, optimizer: Any) -> List[Tuple[float, float]]:
        """Density and factor of each of the optimizer's entries in a step."""
        import torch

        from . import _study
        entries, names = optimizer._entries, [entry.name for entry in optimizer._entries]
        if self._reference is None or names != self._names:
            self._names, self._reference = names, _study.ReferenceRun(self._what, self._directory, names)
        decay = "random" if self._what == "density" else "decoupled"
        follows = [optimizer.param_groups[entry.group]["decay"] == decay for entry in entries]
        own = [(optimizer._strengths[entry.group], float(entry.tensor.abs().sum(dtype=torch.float64))) if follow else (0.0, 0.0)
               for entry, follow in zip(entries, follows)]
        densities, factors = self._reference.follow(step, own)
        return [(density, factor if follow else 1.0) for density, factor, follow in zip(densities, factors, follows)]


@functools.lru_cache(maxsize=None)
def compared(optimizer: type) -> type:
    """The class, whose optimizers also know what they are in a comparison."""

    class Compared(optimizer):  # type: ignore[misc, valid-type]
        decay_budget = 0.0
        _run = ""
        _run_steps = 0  # of this run, where a state that was loaded may have had more
        _record: Optional[Record] = None
        _follow: Optional[Follow] = None

        def step(self, closure: Any = None) -> Any:
            result, report = super().step(closure), self.report()
            if not report.skipped:
                self.decay_budget += report.total.budget
                self._run_steps += 1
                if self._record:
                    self._record.add(self._run_steps, report)
            return result

        def _amounts(self) -> Sequence[Tuple[float, float]]:
            return self._follow.amounts(self._run_steps + 1, self) if self._follow else ()

        def state_dict(self) -> Dict[str, Any]:
            return {**super().state_dict(), "compare": {"run": self._run, "steps": self._run_steps, "budget": self.decay_budget}}

        def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
            super().load_state_dict(state_dict)
            saved = state_dict.get("compare", {})
            if saved.get("run") == self._run:  # a checkpoint of this run, which continues
                self._run_steps, self.decay_budget = saved["steps"], saved["budget"]

        def __getstate__(self) -> Dict[str, Any]:
            raise TypeError("the optimizer of a run of cautious.compare cannot be copied; its state_dict() can")

    return Compared


def attach(made: Any, run: _study.Run, number: int) -> None:
    """Makes it the optimizer of the run that has this number."""
    made._run = run.folder
    if run.decay_trace:
        made._record = Record(folder(run.directory, number))
    reference = run.density_from or run.budget_from
    if reference:
        if number >= count_traces(reference):
            raise RuntimeError(f"this is optimizer {number + 1} of the run, but its reference run, {reference}, recorded "
                               f"{count_traces(reference)}; make as many in every arm")
        made._follow = Follow("density" if run.density_from else "budget", folder(reference, number))


def finish(made: Sequence[Any], run: _study.Run) -> None:
    """At the end of the run: its traces are complete, and so is what it had to repeat."""
    for each in made:
        if each._record:
            each._record.end([name for group in each.param_groups for name in group["param_names"]])
    reference = run.density_from or run.budget_from
    if reference and len(made) != count_traces(reference):
        raise RuntimeError(f"this run made {len(made)} of the {count_traces(reference)} optimizers whose decay it has to repeat; "
                           "make them by optimizer(model), as many in every arm")
