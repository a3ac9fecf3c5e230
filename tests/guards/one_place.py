"""Algorithm 1 and its mask exist once: every rule, decay, element type and instruction set ends in the same two lines."""
import re

from tree import files, finish, read

DECAYS = "include/cautious/decays.h"
# Pattern -> where it occurs and how often. Comments do not count.
PLACES = {
    # the mask: on unless the signs are strictly opposite
    r"return !\(signed_product\(": {DECAYS: 2},
    # the step itself: x - lr (u + wd [on] x), rounded once
    r"fma\(\s*-lr\s*,\s*fma\(": {"src/kernels/algorithm1.h": 1},
}
# Who may ask for the sign of a product: the definition, the two masks, and the count of active coordinates.
SIGNS = {"include/cautious/detail/scalar.h", DECAYS, "src/kernels/algorithm1.h"}

code = {str(path): re.sub(r"//.*", "", read(path)) for path in files("include", "src", suffixes={".h", ".cc"})}
faults = []
for pattern, expected in PLACES.items():
    found = {path: len(re.findall(pattern, text)) for path, text in code.items() if re.search(pattern, text)}
    if found != expected:
        faults.append(f"'{pattern}' is expected in {expected}, found in {found}")
for path, text in code.items():
    if re.search(r"signed_product\(", text) and path not in SIGNS:
        faults.append(f"{path} compares signs; a mask belongs in {DECAYS}")
finish(faults, len(code))
