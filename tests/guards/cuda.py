"""The CUDA kernels compile, to machine code of every GPU asked for and to PTX, and their f32 arithmetic is that of docs/spec.md:
rounded to nearest, denormals as zeros, nothing approximate. No GPU is needed. usage: cuda.py ROOT NVCC "FLAGS" ARCHITECTURE..."""
import pathlib
import re
import subprocess
import sys
import tempfile

from tree import ROOT, finish

nvcc, flags, architectures = sys.argv[2], sys.argv[3].split(), sys.argv[4:]
ARITHMETIC = re.compile(r"\b((?:add|sub|mul|mad|fma|div|sqrt|rsqrt|rcp|sin|cos|ex2|lg2|tanh)\.[a-z.]*f32)\b")

faults = []
with tempfile.TemporaryDirectory() as folder:
    command = [nvcc, *flags, f"--keep-dir={folder}", "--keep", "-c", str(ROOT / "src/kernels/cuda.cu"), "-o", f"{folder}/cuda.o"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        faults.append(f"src/kernels/cuda.cu does not compile:\n{done.stdout}{done.stderr}")
    made = [path.name for path in pathlib.Path(folder).iterdir()]
    for architecture in architectures:
        if not any(re.search(rf"sm_{architecture}\.cubin$", name) for name in made):
            faults.append(f"there is no machine code for sm_{architecture}; there is: {', '.join(sorted(made))}")
    ptx = "".join(path.read_text() for path in pathlib.Path(folder).glob("*.ptx"))
operations = ARITHMETIC.findall(ptx)
faults += [f"{name} is not rounded to nearest with denormals as zeros" for name in sorted(set(operations)) if ".rn.ftz" not in name]
finish(faults, len(operations))
