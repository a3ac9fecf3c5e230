"""Every public header compiles alone; torch.h where libtorch is. Misuse ends in the compiler, with words. usage: headers.py ROOT COMPILER [TORCH_INCLUDE...]"""
import concurrent.futures
import os
import subprocess
import sys

from tree import ROOT, files, finish

COMPILER = sys.argv[2]
TORCH = [f"-idirafter{folder}" for folder in sys.argv[3:]]
WITHOUT = set() if TORCH else {"torch.h"}


COMMAND = [COMPILER, "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wno-sign-conversion",
           "-Werror", "-fsyntax-only", f"-I{ROOT / 'include'}", *TORCH, "-x", "c++", "-"]
# What does not compile, and what the compiler then says.
REFUSED = {"int x[4], g[4]; o.add(\"x\", {4}, x, g);": "a tensor has elements of float, double or cautious::Bf16",
           "float x[4]; double g[4]; o.add(\"x\", {4}, x, g);": "no matching function"}


def compiles(header):
    name = header.relative_to("include")
    done = subprocess.run(COMMAND, input=f"#include <{name}>\n#include <{name}>\n", capture_output=True, text=True)
    return None if done.returncode == 0 else f"{header} does not compile alone:\n{done.stderr}"


def refused(misuse):
    source = f"#include <cautious/cautious.h>\nvoid f(cautious::Optimizer& o) {{ {misuse} }}\n"
    done = subprocess.run(COMMAND, input=source, capture_output=True, text=True)
    return None if done.returncode != 0 and REFUSED[misuse] in done.stderr else f"'{misuse}' is not refused:\n{done.stderr}"


with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    results = list(pool.map(compiles, [header for header in files("include", suffixes={".h"}) if header.name not in WITHOUT]))
    results += pool.map(refused, REFUSED)
finish([fault for fault in results if fault], len(results))
