#!/usr/bin/env bash
# Builds the core, the rooms without libtorch and some of their tests as a sanitizer preset says and runs them.
# usage: sanitized.sh asan|tsan SOURCE_DIR BUILD_DIR
set -euo pipefail
preset=$1 source_dir=$2 build_dir=$3

# Everything that walks buffers or reads files; of the product, one rule per number of moments and one that looks at whole tensors.
# Everything that starts threads. The default build covers the rest.
case $preset in
  asan) core='product|edges|bf16|muon|polar_edges|state_errors|safetensors_malformed|steps'
        program='base|checkpoint|decay_trace|documents|metrics|mixture|page|plan|plan_errors|run_config|run_config_errors'
        program+='|run_config_layers|seal|statistics|study_directory|study_results|tokens'
        files="/(core/($core)|program/($program)|c/.*)_test"
        targets=(core_test program_test c_test c_errors c_use) tests='^c\.'
        filters=('-EveryRecipe/*:MatrixSchedules.*' '*/sgd_*:*/adam_*:*topk*') ;;
  tsan) files='/(determinism|muon_run)_test'
        targets=(core_test c_errors) tests='^c\.errors'
        filters=('-InstructionSets.*:Chunking.*') ;;
esac

cd "$source_dir"
cmake --preset "$preset" -B "$build_dir" -DCAUTIOUS_TEST_FILES="$files" --log-level=WARNING >/dev/null
cmake --build "$build_dir" --target "${targets[@]}"

# libomp's tool Archer tells the thread sanitizer about OpenMP's synchronization and asks for the first option.
export TSAN_OPTIONS="ignore_noninstrumented_modules=1 halt_on_error=1"
export UBSAN_OPTIONS="print_stacktrace=1"
for filter in "${filters[@]}"; do
  "$build_dir/tests/core_test" --gtest_brief=1 --gtest_filter="$filter"
done
if [[ $preset == asan ]]; then "$build_dir/tests/program_test" --gtest_brief=1; fi
ctest --test-dir "$build_dir" -R "$tests" --no-tests=error --output-on-failure
