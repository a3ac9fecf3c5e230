#!/usr/bin/env bash
# Installs the Debian packages the build, the tests and the checks need, and only those that are missing.
# Says nothing when all are there. usage: cmake/deps.sh [--list]
set -euo pipefail

packages=(
  g++ cmake ninja-build make pkg-config binutils mold                 # build
  nlohmann-json3-dev libfmt-dev libcli11-dev                          # library, program
  libopenblas-openmp-dev                                              # matrix products, singular values
  libtomlplusplus-dev libssl-dev zlib1g-dev                           # configuration, checksums, compressed text
  libzstd-dev libsnappy-dev                                           # compressed text, Parquet files
  libpcre2-dev libutf8proc-dev                                        # tokenizers
  libpng-dev libjpeg62-turbo-dev                                      # images
  libboost-math-dev                                                   # statistics
  libboost-dev libeigen3-dev coinor-libclp-dev                        # the laboratory: flows, matrices, linear programs
  libcpp-httplib-dev                                                  # the page of `cautious watch`
  libtorch-dev libgloo-dev                                            # training (CAUTIOUS_TORCH)
  iproute2                                                            # test hosts
  libgtest-dev libbenchmark-dev                                       # tests, benchmarks
  python3 python3-numpy python3-protobuf python3-crcmod               # guards, golden vectors, independent readers
  python3-jinja2                                                      # chat templates, rendered by another
  python3-dev pybind11-dev python3-pip python3-torch                  # the Python package, and the PyTorch it is tested with
  chromium fonts-dejavu-core                                          # reports as a reader sees them
  clang clang-format clang-tidy libclang-rt-dev libomp-dev            # lint, fuzzing, race detection with the OpenMP runtime
)
# npm fetches what zooms the figures of a report; one that did not come from Debian will do.
command -v npm >/dev/null || packages+=(npm)
if [[ ${1:-} == --list ]]; then
  echo "${packages[*]}"
  exit 0
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "deps: not a Debian system; install what these Debian packages hold: ${packages[*]}" >&2
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status} ' "$package" 2>/dev/null || true)
  [[ $status == *installed* && $status != *not-installed* ]] || missing+=("$package")
done
(( ${#missing[@]} )) || exit 0

root=()
if (( EUID != 0 )); then root=(sudo -n); fi
echo "deps: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# A source that cannot be refreshed matters only if a package is then not found.
"${root[@]}" apt-get -qq update >"$log" 2>&1 || true
if ! "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
     apt-get -qq -y --no-install-recommends install "${missing[@]}" >>"$log" 2>&1; then
  tail -n 5 "$log" >&2
  echo "deps: could not install; as root: apt-get install ${missing[*]}" >&2
  exit 1
fi
