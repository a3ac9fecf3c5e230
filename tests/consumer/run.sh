#!/usr/bin/env bash
# Installs a finished build to a new prefix and builds examples against it, outside the source tree: with CMake in C++ and in C,
# with a compiler and pkg-config, and the libtorch example if the build has cautious::torch.
# usage: run.sh SOURCE_DIR BUILD_DIR WORK_DIR
set -euo pipefail
source_dir=$1 build_dir=$2 work_dir=$3

rm -rf "$work_dir"
mkdir -p "$work_dir"
if [[ -x $build_dir/cautious ]]; then cmake --build "$build_dir" --target manual >/dev/null; fi
cmake --install "$build_dir" --prefix "$work_dir/prefix" >/dev/null
# The prefix is moved once: an installed package must not remember where it was made.
mv "$work_dir/prefix" "$work_dir/moved"

# usage: consume NAME EXAMPLE EXPECTED_LINE [CMAKE_OPTION]
consume() {
  local project=$work_dir/$1
  mkdir -p "$project"
  cp "$source_dir/tests/consumer/CMakeLists.txt" "$project/"
  cp "$source_dir/examples/$2" "$project/main.${2##*.}"
  cmake -S "$project" -B "$project/build" -G Ninja -DCMAKE_PREFIX_PATH="$work_dir/moved" ${4:-} >/dev/null
  cmake --build "$project/build" >/dev/null
  "$project/build/consumer" | tee "$project/output"
  grep -q "$3" "$project/output"
}
consume core ten_lines.cc '^step 300  x0 1\.00'
consume c ten_lines.c '^step 300  x0 1\.00' -DWITH_C=ON

# The same without CMake. usage: compile NAME COMMAND...
compile() {
  local program=$work_dir/$1
  "${@:2}" -o "$program"
  "$program" | tee "$program.output"
  grep -q '^step 300  x0 1\.00' "$program.output"
}
PKG_CONFIG_PATH=$(dirname "$(find "$work_dir/moved" -name cautious.pc)")
export PKG_CONFIG_PATH
read -ra shared <<<"$(pkg-config --cflags --libs cautious) -Wl,-rpath,$(pkg-config --variable=libdir cautious)"
# The archive: everything is static but the system's libraries.
archive=$(pkg-config --static --cflags --libs cautious)
read -ra archive <<<"${archive/-lcautious/-l:libcautious.a}"
strict=(-pedantic -Wall -Wextra -Werror)
compile by_cc cc -std=c99 "${strict[@]}" "$source_dir/examples/ten_lines.c" "${shared[@]}"
compile as_cpp c++ -std=c++11 "${strict[@]}" -x c++ "$source_dir/examples/ten_lines.c" -x none "${shared[@]}"
compile by_cc_static cc -std=c99 "$source_dir/examples/ten_lines.c" "${archive[@]}"
compile by_cpp_static c++ -std=c++20 "$source_dir/examples/ten_lines.cc" "${archive[@]}"
# Which library is which: the first two need libcautious.so, the others do not.
for program in by_cc as_cpp by_cc_static by_cpp_static; do
  wanted=$(ldd "$work_dir/$program" | grep -c 'libcautious\.so' || true)
  expected=1
  if [[ $program == *_static ]]; then expected=0; fi
  [[ $wanted == "$expected" ]] || { echo "$program needs $wanted libcautious.so, not $expected"; exit 1; }
done

if [[ -f $work_dir/moved/include/cautious/torch.h ]]; then consume torch torch_swap.cc '^step 200  loss 0\.0' -DWITH_TORCH=ON; fi
# What the installed README sends its reader to.
readme=$(find "$work_dir/moved" -name README.md -path '*/doc/cautious/README.md')
grep -oE '\]\((docs|examples|[A-Z]+)[^)#]*' "$readme" | cut -c3- | while read -r link; do
  [[ -e $(dirname "$readme")/$link ]] || { echo "the installed README links to $link, which is not there"; exit 1; }
done
if [[ -x $build_dir/cautious ]]; then
  "$work_dir/moved/bin/cautious" --version
  for page in cautious cautious-compare cautious-lab; do [[ -s $work_dir/moved/share/man/man1/$page.1 ]]; done
  [[ -s $work_dir/moved/share/bash-completion/completions/cautious ]]
fi
if [[ -x $build_dir/cautious-train ]]; then "$work_dir/moved/bin/cautious" train --preset nano-1m --dry-run; fi
