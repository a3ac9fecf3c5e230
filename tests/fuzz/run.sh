#!/bin/sh
# tests/fuzz/run.sh BUILD_DIRECTORY [RUNS]: builds the safetensors fuzzer with clang++ and runs it for a fixed number of inputs
# from a fixed seed. Exit code 0: no finding; otherwise the offending input is left in BUILD_DIRECTORY as crash-*.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${1:?usage: run.sh BUILD_DIRECTORY [RUNS]}
runs=${2:-60000}
command -v clang++ >/dev/null || { echo "run.sh: clang++ not found; install the package clang" >&2; exit 2; }

cmake -S "$here" -B "$build" -DCMAKE_CXX_COMPILER=clang++ >"$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }
cmake --build "$build" --parallel 2 >"$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }
rm -rf "$build/found"
mkdir "$build/found"
# The corpus in the repository is only read; what the run finds goes to the build directory.
"$build/safetensors_fuzz" -runs="$runs" -seed=1 -max_len=4096 -timeout=10 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 \
  -dict="$here/safetensors.dict" -artifact_prefix="$build/" "$build/found" "$here/corpus"
