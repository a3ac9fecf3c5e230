"""Every public header compiles alone; torch.h where libtorch is. usage: headers.py ROOT COMPILER [TORCH_INCLUDE...]"""
import concurrent.futures
import os
import subprocess
import sys

from tree import ROOT, files, finish

COMPILER = sys.argv[2]
TORCH = [f"-idirafter{folder}" for folder in sys.argv[3:]]
WITHOUT = set() if TORCH else {"torch.h"}


def compiles(header):
    name = header.relative_to("include")
    command = [COMPILER, "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wno-sign-conversion",
               "-Werror", "-fsyntax-only", f"-I{ROOT / 'include'}", *TORCH, "-x", "c++", "-"]
    done = subprocess.run(command, input=f"#include <{name}>\n#include <{name}>\n", capture_output=True, text=True)
    return None if done.returncode == 0 else f"{header} does not compile alone:\n{done.stderr}"


with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    results = list(pool.map(compiles, [header for header in files("include", suffixes={".h"}) if header.name not in WITHOUT]))
finish([fault for fault in results if fault], len(results))
