"""The optimizer over arrays: add them with their gradients, then step. cautious.torch is the one for PyTorch's parameters."""
from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Sequence, Union

import numpy as np

from . import _core
from .arrays import overlap, shared
from .recipe import made, settings_of
from .report import Report, tally


class Optimizer:
    """A recipe, or a Routing, and arrays that it steps in place.

    Options by keyword: moments ("f32", "bf16"), rounding of bf16 parameters ("nearest", "stochastic", "split"), nonfinite
    ("propagate", "skip", "error"), norms, grad_clip, update_rms_clip, seed, threads, isa.

    >>> import numpy as np, cautious
    >>> w, dw = np.ones((2, 3), np.float32), np.full((2, 3), 0.5, np.float32)
    >>> optimizer = cautious.Optimizer("lion decay=cautious weight_decay=1", seed=1)
    >>> optimizer.add("w", w, dw)
    >>> optimizer.step(lr=0.1).total.ratio         # update and weights agree in sign everywhere
    1.0
    >>> float(w[0, 0])                             # 1 - 0.1 * (1 + 1 * 1)
    0.800000011920929
    """

    def __init__(self, recipe: Union[str, _core.Routing] = "adamw decay=cautious weight_decay=0.1", **options: Any):
        routing = recipe if isinstance(recipe, _core.Routing) else _core.everything(str(made(recipe)))
        self._core = _core.Core(routing, settings_of(options.items()))
        self._names: List[str] = []
        self._x: Dict[str, np.ndarray] = {}
        self._elements: Dict[str, str] = {}
        self._g: Dict[str, Optional[np.ndarray]] = {}

    @staticmethod
    def matrices_and_rest(matrices: str = "muon decay=cautious", rest: str = "adamw decay=cautious",
                          max_side: Optional[int] = None, **options: Any) -> "Optimizer":
        """Matrices to one recipe, the rest to another; vectors do not decay. A matrix with a side above max_side belongs to
        the rest.

        >>> import numpy as np, cautious
        >>> optimizer = cautious.Optimizer.matrices_and_rest(max_side=1000)
        >>> for name, shape in {"w": (8, 4), "embedding": (5000, 4), "bias": (8,)}.items():
        ...     optimizer.add(name, np.ones(shape), np.ones(shape))
        >>> [optimizer.group_of(name) for name in optimizer.names]
        ['matrices', 'rest', 'vectors']
        """
        limit = {} if max_side is None else {"max_side": max_side}
        return Optimizer(_core.matrices_and_rest(matrices, rest, **limit), **options)

    @property
    def names(self) -> List[str]:
        return list(self._names)

    def add(self, name: str, x: Any, g: Any = None, *, dtype: Optional[str] = None, x0: Any = None) -> None:
        """Takes in an array and its gradient, which stay the caller's: fill g, then step() changes x. Without g it is left out
        until gradient() gives one. x0 is the anchor of the decays that have one, instead of x as it is now."""
        array, element = shared(x, f"x of '{name}'", dtype, written=True)
        gradient, of = (None, element) if g is None else self._gradient(name, g, array, element)
        for other, known in self._x.items():
            if overlap(array, known):
                raise ValueError(f"x of '{name}' shares memory with x of '{other}'; every parameter is added once")
        anchor = None if x0 is None else self._fitting(shared(x0, f"x0 of '{name}'", dtype)[0], f"x0 of '{name}'", array)
        g_at = 0 if gradient is None else gradient.ctypes.data
        self._core.add(name, list(array.shape), element, of, array.ctypes.data, g_at, "")
        self._names.append(name)
        self._x[name], self._g[name], self._elements[name] = array, gradient, of
        if anchor is not None:
            self._core.set_anchor(len(self._names) - 1, anchor.ctypes.data)

    def gradient(self, name: str, g: Any) -> None:
        """Another gradient array from now on, of the same type; None leaves the tensor out."""
        at, array = self._index(name), self._x[name]
        gradient, of = (None, None) if g is None else self._gradient(name, g, array, self._elements[name])
        if of is not None and of != self._elements[name]:
            raise TypeError(f"the gradient of '{name}' is {of}; it was added with {self._elements[name]}")
        self._core.bind(at, array.ctypes.data, 0 if gradient is None else gradient.ctypes.data)
        self._g[name] = gradient

    def step(self, lr: float, *, lr_max: float = 0.0, decay_factor: float = 1.0,
             tensor_factors: Optional[Sequence[float]] = None) -> Report:
        """One step of every tensor that has a gradient. lr_max: peak of the schedule, for the couplings that need it;
        decay_factor: of a weight-decay schedule; tensor_factors: one more factor for the weight decay of each tensor."""
        self._core.step(lr, lr_max, decay_factor, [] if tensor_factors is None else list(tensor_factors))
        return self.report()

    def report(self) -> Report:
        """Of the last step."""
        step, skipped, clip_scale, numbers = self._core.report()
        return Report(step, skipped, clip_scale, self._names, numbers[:-1], tally(numbers[-1]))

    def group_of(self, name: str) -> str:
        """The group that the routing sent a tensor to."""
        return self._core.group_of(self._index(name))

    def state(self, name: str) -> Dict[str, np.ndarray]:
        """Moments "m" and "v", "low" of split rounding, the anchor "x0": the state itself, not a copy. bf16 is uint16."""
        return dict(self._core.state(self._index(name)))

    def state_dict(self) -> Dict[str, Dict[str, Any]]:
        """Per tensor: "step" and copies of its state."""
        return {name: {"step": self._core.steps_of(at), **{piece: array.copy() for piece, array in self._core.state(at)}}
                for at, name in enumerate(self._names)}

    def load_state_dict(self, state: Dict[str, Dict[str, Any]]) -> None:
        """Continues from state_dict(); changes nothing unless names, pieces, shapes and types all fit."""
        if list(state) != self._names:
            raise ValueError(f"the state is of the tensors {list(state)}, this optimizer has {self._names}")
        copies = []
        for at, name in enumerate(self._names):
            there, here = state[name], dict(self._core.state(at))
            if set(there) != {"step", *here}:
                raise ValueError(f"the state of '{name}' has {sorted(there)}, this optimizer needs {sorted(['step', *here])}")
            for piece, array in here.items():
                if np.shape(there[piece]) != array.shape or np.asarray(there[piece]).dtype != array.dtype:
                    other = np.asarray(there[piece])
                    raise ValueError(f"{piece} of '{name}' is {other.dtype} {list(other.shape)}, this optimizer needs "
                                     f"{array.dtype} {list(array.shape)}")
                copies.append((array, there[piece]))
            if not isinstance(there["step"], int) or there["step"] < 0:
                raise ValueError(f"step of '{name}' is {there['step']!r}; it must be a whole number, not negative")
        for array, value in copies:
            np.copyto(array, value)
        for at, name in enumerate(self._names):
            self._core.set_steps(at, state[name]["step"])

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """The state as a safetensors file (docs/spec.md, section 14), which C++ reads too."""
        self._core.save(os.fspath(path))

    def load(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Continues from save(), bitwise; changes nothing unless everything fits."""
        with open(path, "rb"):  # a missing file is Python's own error
            pass
        self._core.load(os.fspath(path))

    def _index(self, name: str) -> int:
        if name not in self._x:
            raise ValueError(f"there is no tensor named '{name}'; there are: {', '.join(self._names) or 'none'}")
        return self._names.index(name)

    def _gradient(self, name: str, g: Any, x: np.ndarray, element: str) -> "tuple[np.ndarray, str]":
        what = f"the gradient of '{name}'"
        bits = element == "bf16" and getattr(g, "dtype", None) == np.uint16
        array, of = shared(g, what, "bf16" if bits else None)
        if overlap(array, x):
            raise ValueError(f"{what} shares memory with x")
        return self._fitting(array, what, x), of

    @staticmethod
    def _fitting(array: np.ndarray, what: str, x: np.ndarray) -> np.ndarray:
        if array.shape != x.shape:
            raise ValueError(f"{what} has shape {list(array.shape)}, x has {list(x.shape)}")
        return array
