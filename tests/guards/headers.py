"""Every public header compiles alone. usage: headers.py ROOT COMPILER"""
import concurrent.futures
import os
import subprocess
import sys

from tree import ROOT, files, finish

COMPILER = sys.argv[2]


def compiles(header):
    name = header.relative_to("include")
    command = [COMPILER, "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wno-sign-conversion",
               "-Werror", "-fsyntax-only", f"-I{ROOT / 'include'}", "-x", "c++", "-"]
    done = subprocess.run(command, input=f"#include <{name}>\n#include <{name}>\n", capture_output=True, text=True)
    return None if done.returncode == 0 else f"{header} does not compile alone:\n{done.stderr}"


with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    results = list(pool.map(compiles, files("include", suffixes={".h"})))
finish([fault for fault in results if fault], len(results))
