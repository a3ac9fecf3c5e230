"""One file knows instruction sets: src/kernels/pack.h. Elsewhere, intrinsics and their headers and macros are a fault, but for
the control register of a thread."""
import re

from tree import files, finish, read

KNOWS = re.compile(r"\b(?:[a-z]*mmintrin\.h|arm_neon\.h|arm_sve\.h|_mm\d*_\w+|__m(?:128|256|512)\w*|__AVX\w*|__SSE\w*|__FMA__|__ARM_NEON\w*|"
                   r"v[a-z]+q?_[fsu](?:16|32|64)|(?:float|u?int)(?:16|32|64)x\d+_t)\b")
ALLOWED = {"src/kernels/pack.h": None, "src/optim/work.cc": {"xmmintrin.h", "_mm_getcsr", "_mm_setcsr"}}

faults, checked = [], 0
for path in files("include", "src", "lab", suffixes={".h", ".cc", ".cu"}):
    checked += 1
    allowed = ALLOWED.get(str(path), set())
    if allowed is None:
        continue
    for word in sorted(set(KNOWS.findall(read(path))) - allowed):
        faults.append(f"{path}: {word} belongs to an instruction set; put it into src/kernels/pack.h")
if not KNOWS.search(read("src/kernels/pack.h")):
    faults.append("src/kernels/pack.h has no intrinsics that this guard recognises")
finish(faults, checked)
