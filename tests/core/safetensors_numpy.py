#!/usr/bin/env python3
"""An independent reader and writer of safetensors files, from the format's public description: struct, json and numpy.

As a program: safetensors_numpy.py COPY DIRECTORY writes files with numpy, lets COPY (safetensors_copy) read and write them
anew, reads those back and compares every byte; then feeds COPY files that it must refuse.
As a module: read(path) -> (tensors, metadata) and write(path, tensors, metadata), where tensors maps a name to an array.
Types that numpy does not have (BF16, the small floats) travel as Raw(type, shape, bytes).
"""
import json
import os
import struct
import subprocess
import sys
from collections import namedtuple

import numpy as np

DTYPES = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "F16": "<f2", "U32": "<u4", "I32": "<i4", "F32": "<f4",
    "U64": "<u8", "I64": "<i8", "F64": "<f8", "C64": "<c8",
}
RAW_BITS = {"BF16": 16, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4}
Raw = namedtuple("Raw", "type shape bytes")


def as_raw(tensor):
    if isinstance(tensor, Raw):
        return tensor
    for name, code in DTYPES.items():
        if tensor.dtype == np.dtype(code):
            return Raw(name, list(tensor.shape), tensor.tobytes(order="C"))
    raise TypeError(f"no safetensors type for numpy's {tensor.dtype}; types: {', '.join(DTYPES)}")


def write(path, tensors, metadata=None, padding=0):
    """padding: spaces after the header; a reader must take any number of them."""
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, tensor in tensors.items():
        raw = as_raw(tensor)
        header[name] = {"dtype": raw.type, "shape": raw.shape, "data_offsets": [len(data), len(data) + len(raw.bytes)]}
        data += raw.bytes
    text = json.dumps(header, ensure_ascii=bool(padding % 2)).encode() + b" " * padding
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


def read(path):
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length].decode())
    data = content[8 + length :]
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        piece, shape = data[begin:end], entry["shape"]
        if entry["dtype"] in DTYPES:
            tensors[name] = np.frombuffer(piece, DTYPES[entry["dtype"]]).reshape(shape)
        else:
            count = int(np.prod(shape, dtype=object)) if shape else 1
            assert len(piece) * 8 == count * RAW_BITS[entry["dtype"]], name
            tensors[name] = Raw(entry["dtype"], shape, piece)
    return tensors, metadata


def examples(seed):
    random = np.random.default_rng(seed)
    tensors = {}
    for number, (name, code) in enumerate(DTYPES.items()):
        for shape in [(), (0,), (5,), (3, 4), (2, 0, 3), (2, 3, 4)][number % 2 :]:
            count = int(np.prod(shape, dtype=int)) * np.dtype(code).itemsize
            raw = random.integers(0, 2 if code == "?" else 256, count, dtype=np.uint8).tobytes()
            tensors[f"layer.{seed}/{name} {list(shape)}"] = np.frombuffer(raw, code).reshape(shape)
    for name, bits in RAW_BITS.items():
        tensors[name] = Raw(name, [2, 4], random.bytes(bits))
    tensors['Gewicht "ü" \u4e2d\U0001f600\\\n'] = np.float32([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45])
    names = list(tensors)
    random.shuffle(names)
    return {name: tensors[name] for name in names}


def same(a, b):
    return list(a) == list(b) and all(as_raw(a[name]) == as_raw(b[name]) for name in a)


def refused(copy, directory):
    """Files of the wrong kind: one line on stderr, exit code 3, nothing written."""
    bad, out = os.path.join(directory, "bad"), os.path.join(directory, "never")
    entry = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    headers = [{"a": {**entry, **change}} for change in (
        {"dtype": "F128"}, {"shape": [3]}, {"shape": [2**62, 4]}, {"data_offsets": [0, 9]}, {"data_offsets": [8, 0]})]
    headers += [{"a": entry, "b": entry}, {"a": entry, "__metadata__": {"k": 1}}, [entry]]
    texts = [json.dumps(header).encode() for header in headers]
    contents = [struct.pack("<Q", len(text)) + text + bytes(8) for text in texts]
    contents += [b"", b"abc", struct.pack("<Q", 2**63) + b"{}", contents[0][:40]]
    for number, content in enumerate(contents):
        with open(bad, "wb") as file:
            file.write(content)
        run = subprocess.run([copy, bad, out], capture_output=True, text=True)
        assert run.returncode == 3 and run.stderr.count("\n") == 1 and not os.path.exists(out), (number, run)
    return len(contents)


def main(copy, directory):
    os.makedirs(directory, exist_ok=True)
    source, target = os.path.join(directory, "numpy.safetensors"), os.path.join(directory, "copy.safetensors")
    tensors = 0
    for seed in range(12):
        written = examples(seed) if seed else {}
        metadata = {"format": "np", "seed": str(seed), "ü\n": '"'} if seed % 3 else {}
        write(source, written, metadata, padding=seed)
        subprocess.run([copy, source, target], check=True)
        got, got_metadata = read(target)
        assert same(written, got), f"tensors differ (seed {seed})"
        assert metadata == got_metadata, (metadata, got_metadata)
        with open(target, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
        assert length % 8 == 0, f"header of {length} bytes is not padded to 8"
        tensors += len(written)
    print(f"safetensors_numpy: {tensors} tensors equal in 12 files, {refused(copy, directory)} bad files refused")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
