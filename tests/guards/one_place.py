"""Algorithm 1 and its mask exist once: every rule, decay, element type and instruction set ends in the same two lines."""
import re

from tree import files, finish, read

# Pattern -> where it occurs and how often. Comments do not count.
PLACES = {
    # the mask: on unless the signs are strictly opposite
    r"signed_like\([^()]*\) >= 0": {"include/cautious/decays/cautious.h": 1, "include/cautious/decays/gradient.h": 1},
    # the step itself: x - lr (u + wd [on] x), rounded once
    r"fma\(\s*-lr\s*,\s*fma\(": {"src/kernels/algorithm1.h": 1},
}
# signed_like(): its definition, the two masks and the count of active coordinates.
SIGNED_LIKE = {"include/cautious/scalar.h", "include/cautious/decays/cautious.h", "include/cautious/decays/gradient.h",
               "src/kernels/algorithm1.h"}

code = {str(path): re.sub(r"//.*", "", read(path)) for path in files("include", "src", suffixes={".h", ".cc"})}
faults = []
for pattern, expected in PLACES.items():
    found = {path: len(re.findall(pattern, text)) for path, text in code.items() if re.search(pattern, text)}
    if found != expected:
        faults.append(f"'{pattern}' is expected in {expected}, found in {found}")
for path, text in code.items():
    if "signed_like(" in text and path not in SIGNED_LIKE:
        faults.append(f"{path} uses signed_like(); a mask belongs in include/cautious/decays/")
finish(faults, len(code))
