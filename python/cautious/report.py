"""What a step did: counts and sums of docs/spec.md, section 12. Everything refers to the parameters before the step."""
from __future__ import annotations

import math
from typing import Dict, List, NamedTuple, Sequence


class Tally(NamedTuple):
    """Of one tensor, or of all of them."""
    count: int = 0      #: coordinates; 0 for a tensor that was left out
    decayed: int = 0    #: coordinates that decayed
    active: int = 0     #: coordinates whose update and parameter agree in sign, whatever the decay
    nonfinite: int = 0  #: NaN or infinite gradient entries
    x2: float = 0.0     #: sums of squares: parameters,
    g2: float = 0.0     #: gradients as given,
    u2: float = 0.0     #: and the direction as applied
    budget: float = 0.0  #: sum of |lr wd x| over decayed coordinates

    @property
    def ratio(self) -> float:
        """Fraction of coordinates that decayed; NaN without coordinates."""
        return self.decayed / self.count if self.count else math.nan

    @property
    def ratio_strict(self) -> float:
        """Fraction of active coordinates, the paper's figure."""
        return self.active / self.count if self.count else math.nan

    @property
    def rms_x(self) -> float:
        return math.sqrt(self.x2 / self.count) if self.count else math.nan

    @property
    def rms_g(self) -> float:
        return math.sqrt(self.g2 / self.count) if self.count else math.nan

    @property
    def rms_u(self) -> float:
        return math.sqrt(self.u2 / self.count) if self.count else math.nan


def tally(row: Sequence[float]) -> Tally:
    """Of a row of eight numbers in Tally's order."""
    return Tally(*map(int, row[:4]), *map(float, row[4:]))


class Report:
    """Of one step: `step` (how many were taken), `skipped`, `clip_scale`, `total`, and `tensors` by name."""

    def __init__(self, step: int, skipped: bool, clip_scale: float, names: List[str], rows: Sequence[Sequence[float]],
                 total: Tally):
        self.step, self.skipped, self.clip_scale, self.total = step, skipped, clip_scale, total
        self._names, self._rows = names, rows

    @property
    def tensors(self) -> Dict[str, Tally]:
        return {name: tally(row) for name, row in zip(self._names, self._rows)}

    def __repr__(self) -> str:
        return (f"Report(step={self.step}, skipped={self.skipped}, tensors={len(self._names)}, ratio={self.total.ratio:.4f}, "
                f"rms_x={self.total.rms_x:.4g}, rms_g={self.total.rms_g:.4g}, rms_u={self.total.rms_u:.4g}, "
                f"budget={self.total.budget:.4g})")
