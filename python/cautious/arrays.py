"""Arrays of others as memory that the library may read and write: NumPy's, and whatever has the buffer protocol,
__array_interface__ or DLPack on the CPU. Nothing is copied; what would have to be is refused."""
from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import numpy as np

from . import _core
from .recipe import settings_of

ELEMENTS = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}
DL_CPU = 1


def _viewed(value: Any, what: str) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__array_interface__"):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        device = value.__dlpack_device__()
        if device[0] != DL_CPU:
            raise ValueError(f"{what} is on DLPack's device {tuple(map(int, device))}; valid: the CPU, {DL_CPU}")
        try:
            array = np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError) as error:
            raise TypeError(f"{what} cannot be shared by DLPack: {error}") from None
        if not array.flags.writeable and hasattr(value, "__array__"):  # old DLPack cannot say whether it may be written to
            own = np.asarray(value)
            return own if own.ctypes.data == array.ctypes.data else array
        return array
    try:
        return np.asarray(memoryview(value))
    except TypeError:
        raise TypeError(f"{what} is a {type(value).__name__}; valid: a NumPy array, or what has the buffer protocol, "
                        "__array_interface__ or DLPack") from None


def shared(value: Any, what: str, dtype: Optional[str] = None, written: bool = False) -> Tuple[np.ndarray, str]:
    """The array and its element type; dtype="bf16" is for arrays of uint16 that hold such bits."""
    array = _viewed(value, what)
    if dtype is None:
        element = ELEMENTS.get(array.dtype)
    elif dtype == "bf16":
        element = "bf16" if array.dtype == np.uint16 else None
    else:
        element = dtype if ELEMENTS.get(array.dtype) == dtype else None
    if element is None:
        asked = f" and not {dtype}" if dtype else ""
        raise TypeError(f"{what} is {array.dtype}{asked}; valid: float32, float64, or uint16 with dtype=\"bf16\"")
    if not array.flags.c_contiguous or not array.flags.aligned:
        raise ValueError(f"{what} does not lie row after row (strides {array.strides}); give numpy.ascontiguousarray() of it")
    if written and not array.flags.writeable:
        raise ValueError(f"{what} is read-only; a step writes to it")
    return array, element


def overlap(a: np.ndarray, b: np.ndarray) -> bool:
    return a.size > 0 and b.size > 0 and np.may_share_memory(a, b)


def polar(matrix: Any, schedule: str = "paper", *, steps: int = 0, scale: str = "none", eps: float = 0.0, blocks: int = 1,
          coefficients: Sequence[float] = (), threads: int = 0) -> np.ndarray:
    """The orthogonal factor U V^T of a matrix U S V^T, by the Newton-Schulz steps of `schedule` (docs/spec.md, section 3).

    >>> import cautious, numpy as np
    >>> q = cautious.polar(np.array([[3.0, 1], [1, 2]]), "exact")
    >>> np.allclose(q, np.eye(2))
    True
    """
    array, element = shared(matrix, "the matrix")
    if array.ndim != 2:
        raise ValueError(f"the matrix has shape {list(array.shape)}; it needs two sides")
    if element == "bf16":
        raise TypeError("the matrix is bf16; valid: float32, float64")
    result = array.copy()
    how = dict(schedule=schedule, steps=steps, scale=scale, eps=eps, blocks=blocks, coefficients=list(coefficients))
    _core.polar(result, settings_of(how.items()), threads)
    return result
