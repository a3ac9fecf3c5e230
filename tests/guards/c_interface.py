"""The C interface is what it says: c.h is C99 and C++ (of 2011, for others' bindings), libcautious.so exports the functions that
c.h declares and nothing else, src/c/exported.map lists them in order, and the version is that of the project.
usage: c_interface.py ROOT C_COMPILER CXX_COMPILER LIBRARY"""
import re
import subprocess
import sys

from tree import ROOT, finish, read

c_compiler, cxx_compiler, library = sys.argv[2:5]
HEADER, MAP = "include/cautious/c.h", "src/c/exported.map"
faults = []


def compile_with(*command):
    done = subprocess.run([*command, "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{ROOT / 'include'}", "-"],
                          input="#include <cautious/c.h>\n#include <cautious/c.h>\nint unused;\n", capture_output=True, text=True)
    if done.returncode != 0:
        faults.append(f"{HEADER} does not compile with {' '.join(command)}:\n{done.stderr}")


compile_with(c_compiler, "-std=c99", "-x", "c")
compile_with(cxx_compiler, "-std=c++11", "-x", "c++")

header = read(HEADER)
code = re.sub(r"//.*", "", header)
declared = re.findall(r"^[a-z_ *]*\b(cautious_[a-z_]+)\(", code, re.M)
listed = re.findall(r"^ +(cautious_[a-z_]+);", read(MAP), re.M)
symbols = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", library], check=True, capture_output=True, text=True).stdout
exported = sorted({line.split()[0].split("@")[0] for line in symbols.splitlines() if line.split()[1] != "A"})
if listed != sorted(declared):
    faults.append(f"{MAP} lists {listed}; {HEADER} declares, in order, {sorted(declared)}")
if exported != sorted(declared):
    faults.append(f"{library} exports {sorted(set(exported) ^ set(declared))} without a declaration in {HEADER}, or lacks them")

version = [re.search(rf"#define CAUTIOUS_VERSION_{name} (\d+)", header).group(1) for name in ("MAJOR", "MINOR", "PATCH")]
project = re.search(r"project\(cautious VERSION (\S+)", read("CMakeLists.txt")).group(1)
if ".".join(version) != project:
    faults.append(f"{HEADER} is version {'.'.join(version)}, the project {project}")
abi = re.search(r"#define CAUTIOUS_ABI (\d+)", header).group(1)
if not read(MAP).startswith(f"CAUTIOUS_{abi} {{"):
    faults.append(f"{MAP} does not begin with CAUTIOUS_{abi}, the ABI of {HEADER}")
finish(faults, len(declared))
