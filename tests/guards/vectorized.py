"""The kernels run on whole AVX registers. Reads the instructions of tile_probe.cc as each compiler makes them; a benchmark is
still needed, since a vector loop can be slow. usage: vectorized.py ROOT "FLAGS" COMPILER..."""
import pathlib
import re
import subprocess
import sys
import tempfile

from tree import ROOT, finish

# Probe -> instructions that must appear on ymm registers, and how often their scalar forms may appear. Buffers that come in a
# struct may overlap for all the compiler knows: it keeps one scalar copy of the loop (two fused multiply-adds) for that case.
FMA, FMA_OR_COPY = ("vfn?madd...ps", 0), ("vfn?madd...ps", 2)
PROBES = {
    "probe_fill_adam": [("vsqrtps", 0), ("vdivps", 0), FMA],
    "probe_fill_lion": [FMA],
    "probe_fill_sgdm": [FMA],
    "probe_apply_cautious": [FMA_OR_COPY],
    "probe_apply_cautious_sums": [FMA_OR_COPY],
    "probe_apply_decoupled": [FMA_OR_COPY],
    "probe_apply_random": [FMA_OR_COPY, ("vpmulld", 0)],
    "probe_store_stochastic": [("vpmulld", 0)],
    "probe_sum_squares": [FMA],
    "probe_sum_abs": [("vaddps", 0)],
}


def instructions(compiler, flags, out):
    """Function name -> its lines of assembly."""
    command = [compiler, "-std=c++20", *flags, "-w", "-DCAUTIOUS_ISA=avx2", f"-I{ROOT / 'include'}", f"-I{ROOT / 'src'}",
               "-c", str(ROOT / "tests/guards/tile_probe.cc"), "-o", str(out)]
    subprocess.run(command, check=True)
    text = subprocess.run(["objdump", "-dC", "--no-show-raw-insn", str(out)], check=True, capture_output=True, text=True).stdout
    found = {}
    for block in text.split("\n\n"):
        head, _, body = block.partition("\n")
        name = re.search(r"::(probe_\w+)\(", head)
        if name:
            found[name[1]] = body
    return found


flags, compilers = sys.argv[2].split(), sys.argv[3:]
faults, checked = [], 0
with tempfile.TemporaryDirectory() as folder:
    for compiler in compilers:
        code = instructions(compiler, flags, pathlib.Path(folder) / "probe.o")
        for probe, wanted in PROBES.items():
            body = code.get(probe, "")
            for pattern, scalars_allowed in wanted:
                checked += 1
                if not re.search(rf"\b{pattern}\b.*%ymm", body):
                    faults.append(f"{compiler}: {probe} has no {pattern} on ymm: the loop is not vectorized")
                scalar = re.sub("p([sd])$", r"s\1", pattern)
                count = len(re.findall(rf"\b{scalar}\b", body)) if scalar != pattern else 0
                if count > scalars_allowed:
                    faults.append(f"{compiler}: {probe} has {count} scalar {scalar}, at most {scalars_allowed} expected")
finish(faults, checked)
