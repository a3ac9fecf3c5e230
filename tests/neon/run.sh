#!/bin/sh
# Cross-compiles the kernels for AArch64 and compares them with the portable ones under an emulator. Installs both if missing.
set -e
cd "$(dirname "$0")/../.."
if ! command -v aarch64-linux-gnu-g++-12 > /dev/null || ! command -v qemu-aarch64 > /dev/null; then
  sudo=$([ "$(id -u)" = 0 ] || echo sudo)
  $sudo apt-get install -y -qq g++-12-aarch64-linux-gnu qemu-user > /dev/null
fi
out=build/neon
mkdir -p $out
flags="-std=c++20 -O2 -Iinclude -Isrc -ffp-contract=off -fno-math-errno -fno-trapping-math"
for isa in portable neon; do
  define=$([ $isa = neon ] && echo -DCAUTIOUS_NEON || true)
  aarch64-linux-gnu-g++-12 $flags -DCAUTIOUS_ISA=$isa $define -c src/kernels/kernels.cc -o $out/$isa.o
done
aarch64-linux-gnu-g++-12 $flags -static tests/neon/neon_check.cc $out/portable.o $out/neon.o -o $out/neon_check
qemu-aarch64 $out/neon_check
