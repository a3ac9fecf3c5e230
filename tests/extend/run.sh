#!/usr/bin/env bash
# What CONTRIBUTING.md says to do for a new rule and a new decay, done by a script to a copy of the sources: a file and a word
# each. Then a step is taken on every path of this machine, and where there is nvcc the kernels for CUDA are compiled.
# usage: run.sh SOURCE_DIR WORK_DIR ON|OFF (with libtorch or not) ON|OFF (with CUDA or not) [PYTHON]
set -euo pipefail
source_dir=$1 work_dir=$2 torch=$3 cuda=$4 python=${5:-}
copy=$work_dir/copy

rm -rf "$work_dir"
mkdir -p "$copy"
cp -r "$source_dir"/{CMakeLists.txt,cmake,include,python,src} "$copy/"

cp "$source_dir/examples/add_a_rule/signum.h" "$copy/include/cautious/rules/"
sed -i -e 's|^#include <cautious/rules/sgdm.h>$|&\n#include <cautious/rules/signum.h>|' \
       -e 's|^using Rule = std::variant<Sgd,|& Signum,|' "$copy/include/cautious/rules.h"
cp "$source_dir/examples/add_a_decay/floored.h" "$copy/include/cautious/"
sed -i -e 's|^#include <cautious/detail/scalar.h>$|&\n#include <cautious/floored.h>|' \
       -e 's|^using Decay = std::variant<None,|& Floored,|' "$copy/include/cautious/decays.h"
for list in rules decays; do
  diff "$source_dir/include/cautious/$list.h" "$copy/include/cautious/$list.h" && { echo "$list.h was not changed"; exit 1; }
done

# As the default preset, but the two libraries only, and without optimization, which takes most of a build.
launcher=$(command -v ccache || true)
cmake -S "$source_dir/tests/extend" -B "$work_dir/build" -G Ninja -DSOURCES="$copy" -DCAUTIOUS_TORCH="$torch" \
      -DCAUTIOUS_CUDA="$cuda" -DCAUTIOUS_CUDA_ARCHITECTURES=80 \
      -DCAUTIOUS_PYTHON_PACKAGE="${python:+ON}" -DCAUTIOUS_PYTHON="$python" \
      -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O0 -Werror" -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher" >"$work_dir/cmake.log"
cmake --build "$work_dir/build" --target check >"$work_dir/build.log" || { cat "$work_dir/build.log"; exit 1; }
if [[ $cuda == ON ]]; then
  grep -q 'move<cautious::Signum, cautious::Floored>' <(nm -C "$work_dir/build/check") || { echo "check has no kernel for CUDA"; exit 1; }
fi
"$work_dir/build/check"
if [[ -n $python ]]; then
  cmake --build "$work_dir/build" --target cautious_core_module >>"$work_dir/build.log" || { cat "$work_dir/build.log"; exit 1; }
  PYTHONPATH=$work_dir/build/cautious/python "$python" -B "$source_dir/tests/extend/check.py"
fi
