"""No function can cross instruction sets. The linker keeps one of several equal weak symbols, so every weak or global symbol of
a kernel object must carry its namespace in its name. usage: symbols.py ROOT ISA OBJECT"""
import subprocess
import sys

from tree import finish

isa, kernel_object = sys.argv[2:4]
inside = f"8cautious{len(isa)}{isa}"  # as mangled

faults, checked = [], 0
for line in subprocess.run(["nm", "--defined-only", kernel_object], check=True, capture_output=True, text=True).stdout.splitlines():
    kind, name = line.split()[-2:]
    if kind not in "TWVuiBDRSG":  # defined and visible to the linker
        continue
    checked += 1
    if inside not in name:
        shown = subprocess.run(["c++filt", name], check=True, capture_output=True, text=True).stdout.strip()
        faults.append(f"{shown} ({kind}) is outside cautious::{isa}: it may replace, or be replaced by, code for another CPU")
finish(faults, checked)
