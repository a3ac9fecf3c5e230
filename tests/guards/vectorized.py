"""The kernels run on whole AVX registers. Reads the instructions of the hottest functions of kernels.cc as each compiler makes
them; a benchmark is still needed, since a vector loop can be slow. usage: vectorized.py ROOT OBJECT ["FLAGS" COMPILER]"""
import pathlib
import re
import subprocess
import sys
import tempfile

from tree import ROOT, finish

FMA = "vfn?madd...ps"
SIDE = "side_by_side<cautious::{}, cautious::{}, cautious::avx2::{}, {}>"
# Function -> instructions that must appear on ymm registers and nowhere in their scalar form.
WANTED = {
    SIDE.format("Adam", "Cautious", "InF32", "false"): ["vsqrtps", "vdivps", FMA],
    SIDE.format("Adam", "Cautious", "InF32", "true"): ["vsqrtps", "vdivps", FMA],
    SIDE.format("Adam", "Cautious", "InBf16AtRandom", "false"): ["vsqrtps", "vdivps", FMA, "vpmulld"],
    SIDE.format("Adam", "Decoupled", "InF32", "false"): ["vsqrtps", "vdivps", FMA],
    SIDE.format("Lion", "Cautious", "InF32", "false"): [FMA, "vminps", "vmaxps"],
    SIDE.format("Sgdm", "Cautious", "InF32", "false"): [FMA],
    "fill<cautious::Adam, float>": ["vsqrtps", "vdivps", FMA],
    "apply<cautious::Cautious, false, false, float>": [FMA],
    "apply<cautious::Cautious, true, false, float>": [FMA],
    "apply<cautious::Random, false, false, float>": [FMA, "vpmulld"],
}


def functions(kernels):
    """Demangled name -> lines of assembly."""
    text = subprocess.run(["objdump", "-dC", "--no-show-raw-insn", str(kernels)], check=True, capture_output=True, text=True).stdout
    found = {}
    for block in text.split("\n\n"):
        head, _, body = block.partition("\n")
        if head.endswith(">:"):
            found[head] = body
    return found


def faults_of(compiler, code):
    for function, wanted in WANTED.items():
        bodies = [body for name, body in code.items() if function in name]
        if len(bodies) != 1:
            yield f"{compiler}: {len(bodies)} functions are named {function}, 1 expected"
            continue
        for pattern in wanted:
            if not re.search(rf"\b{pattern}\b.*%ymm", bodies[0]):
                yield f"{compiler}: {function} has no {pattern} on ymm: it is not vectorized"
            scalar = re.sub("ps$", "ss", pattern)
            if scalar != pattern and re.search(rf"\b{scalar}\b", bodies[0]):
                yield f"{compiler}: {function} has {scalar}: it is not vectorized throughout"


kernels, other = sys.argv[2], sys.argv[3:]
faults = list(faults_of("the build", functions(kernels)))
if other:
    flags, compiler = other
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "kernels.o"
        subprocess.run([compiler, "-std=c++20", *flags.split(), "-w", "-DCAUTIOUS_ISA=avx2", f"-I{ROOT / 'include'}",
                        f"-I{ROOT / 'src'}", "-c", str(ROOT / "src/kernels/kernels.cc"), "-o", str(out)], check=True)
        faults += faults_of(compiler, functions(out))
finish(faults, len(WANTED))
