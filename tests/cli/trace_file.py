"""Traces for numpy: safetensors files through the independent reader and writer of tests/core/safetensors_numpy.py, and BF16 arrays."""
import pathlib
import sys

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "core"))
import safetensors_numpy


class Bf16:
    """The upper halves of float32 values."""

    def __init__(self, bits):
        self.bits = np.asarray(bits, dtype=np.uint16)

    @staticmethod
    def nearest(values):
        bits = np.asarray(values, dtype=np.float32).view(np.uint32).astype(np.uint64)
        return Bf16(((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16))

    def f32(self):
        return (self.bits.astype(np.uint32) << 16).view(np.float32)


def write(path, tensors):
    raw = {name: safetensors_numpy.Raw("BF16", list(array.bits.shape), array.bits.tobytes()) if isinstance(array, Bf16) else array
           for name, array in tensors.items()}
    safetensors_numpy.write(path, raw)


def read(path):
    """Tensors by name, and the metadata."""
    tensors, metadata = safetensors_numpy.read(path)
    for name, tensor in tensors.items():
        if isinstance(tensor, safetensors_numpy.Raw):
            tensors[name] = Bf16(np.frombuffer(tensor.bytes, np.uint16).reshape(tensor.shape))
    return tensors, metadata
