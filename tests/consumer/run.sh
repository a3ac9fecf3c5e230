#!/usr/bin/env bash
# Installs a finished build to a new prefix and builds the README's example against it, outside the source tree.
# usage: run.sh SOURCE_DIR BUILD_DIR WORK_DIR
set -euo pipefail
source_dir=$1 build_dir=$2 work_dir=$3

rm -rf "$work_dir"
mkdir -p "$work_dir/project"
cmake --install "$build_dir" --prefix "$work_dir/prefix" >/dev/null
cp "$source_dir/tests/consumer/CMakeLists.txt" "$work_dir/project/"
cp "$source_dir/examples/ten_lines.cc" "$work_dir/project/main.cc"

# The prefix is moved once: an installed package must not remember where it was made.
mv "$work_dir/prefix" "$work_dir/moved"
cmake -S "$work_dir/project" -B "$work_dir/build" -G Ninja -DCMAKE_PREFIX_PATH="$work_dir/moved" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$work_dir/build" >/dev/null
"$work_dir/build/consumer" | tee "$work_dir/output"
grep -q '^step 300  x0 1\.00' "$work_dir/output"
if [[ -x $build_dir/cautious ]]; then "$work_dir/moved/bin/cautious" --version; fi
