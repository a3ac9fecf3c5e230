#!/bin/sh
# tests/fuzz/run.sh BUILD_DIRECTORY [INPUTS]: builds the fuzzers with clang++ and runs each for a fixed number of inputs, or for
# INPUTS of them if that is more, from a fixed seed. Exit code 0: no finding; otherwise the offending input is left in BUILD_DIRECTORY as
# FORMAT-crash-*.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${1:?usage: run.sh BUILD_DIRECTORY [INPUTS]}
inputs=${2:-0}
command -v clang++ >/dev/null || { echo "run.sh: clang++ not found; install the package clang" >&2; exit 2; }

cmake -S "$here" -B "$build" -DCMAKE_CXX_COMPILER=clang++ >"$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }
cmake --build "$build" --parallel 2 >"$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }

# fuzz FORMAT RUNS LONGEST_INPUT MEGABYTES [OPTION...]: one allocation may have that many megabytes. The corpus in the
# repository is only read; what the run finds goes to the build directory.
fuzz() {
  format=$1 runs=$(($2 > inputs ? $2 : inputs)) longest=$3 megabytes=$4
  shift 4
  rm -rf "$build/found_$format"
  mkdir "$build/found_$format"
  "$build/${format}_fuzz" -runs="$runs" -seed=1 -max_len="$longest" -malloc_limit_mb="$megabytes" -timeout=10 \
    -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 -artifact_prefix="$build/$format-" "$@" \
    "$build/found_$format" "$here/corpus/$format"
}
fuzz safetensors 60000 4096 64 -dict="$here/safetensors.dict"
fuzz gguf 60000 2048 16
fuzz idx 15000 2048 8
fuzz cifar 4000 6200 8
fuzz png 30000 1024 64
fuzz jpeg 20000 1024 64
fuzz model 20000 3072 64
fuzz template 40000 2048 64 -dict="$here/template.dict"
fuzz tokenizer 6000 8192 64 -dict="$here/tokenizer.dict"
fuzz tasks 40000 1024 64
fuzz parquet 60000 4096 64
fuzz config 3000 2048 64 -dict="$here/config.dict"
fuzz plan 4000 2048 64 -dict="$here/config.dict"
fuzz problem 10000 1024 64
fuzz metrics 6000 1024 16
fuzz state 4000 2048 16
fuzz summary 6000 2048 16
fuzz trace 6000 1024 16
fuzz tokens 15000 1536 16
fuzz documents 1500 1024 128
