#!/usr/bin/env bash
# Installs a finished build to a new prefix and builds an example against it, outside the source tree; the libtorch example too,
# if the build has cautious::torch. usage: run.sh SOURCE_DIR BUILD_DIR WORK_DIR
set -euo pipefail
source_dir=$1 build_dir=$2 work_dir=$3

rm -rf "$work_dir"
mkdir -p "$work_dir"
cmake --install "$build_dir" --prefix "$work_dir/prefix" >/dev/null
# The prefix is moved once: an installed package must not remember where it was made.
mv "$work_dir/prefix" "$work_dir/moved"

# usage: consume NAME EXAMPLE EXPECTED_LINE [CMAKE_OPTION]
consume() {
  local project=$work_dir/$1
  mkdir -p "$project"
  cp "$source_dir/tests/consumer/CMakeLists.txt" "$project/"
  cp "$source_dir/examples/$2" "$project/main.cc"
  cmake -S "$project" -B "$project/build" -G Ninja -DCMAKE_PREFIX_PATH="$work_dir/moved" ${4:-} >/dev/null
  cmake --build "$project/build" >/dev/null
  "$project/build/consumer" | tee "$project/output"
  grep -q "$3" "$project/output"
}
consume core ten_lines.cc '^step 300  x0 1\.00'
if [[ -f $work_dir/moved/include/cautious/torch.h ]]; then consume torch torch_swap.cc '^step 200  loss 0\.0' -DWITH_TORCH=ON; fi
if [[ -x $build_dir/cautious ]]; then "$work_dir/moved/bin/cautious" --version; fi
if [[ -x $build_dir/cautious-train ]]; then "$work_dir/moved/bin/cautious" train --preset nano-1m --dry-run; fi
