#!/usr/bin/env bash
# Builds some of the test programs as a sanitizer preset says and runs them. `cmake --workflow --preset asan` does it with all.
# usage: sanitized.sh asan|tsan SOURCE_DIR BUILD_DIR TEST...
set -euo pipefail
preset=$1 source_dir=$2 build_dir=$3
tests=("${@:4}")

cd "$source_dir"
cmake --preset "$preset" -B "$build_dir" --log-level=WARNING >/dev/null
cmake --build "$build_dir" -j 1 --target "${tests[@]}"

# libomp's tool Archer tells the thread sanitizer about OpenMP's synchronization and asks for the first option.
export TSAN_OPTIONS="ignore_noninstrumented_modules=1 halt_on_error=1"
export UBSAN_OPTIONS="print_stacktrace=1"
# Of the product, one rule per number of moments and one that looks at whole tensors; of determinism, what starts threads. The
# default build covers the rest.
declare -A filter=([product_test]='*/sgd_*:*/adam_*:*topk*' [determinism_test]='-InstructionSets.*:Chunking.*')
for test in "${tests[@]}"; do
  echo "$preset: $test"
  "$build_dir/tests/$test" --gtest_brief=1 --gtest_filter="${filter[$test]:-*}"
done
