#!/usr/bin/env bash
# What `make trixie` does: builds and tests this tree on Debian 13 (g++ 14, libtorch 2.6), in a chroot, then compiles and
# links it there with a libtorch for CUDA, which is not run. Not part of `make test`, and no replacement for it.
# usage: cmake/trixie.sh [JOBS [PIECE...]], pieces in this order:
#   chroot   Debian 13 with the packages of cmake/deps.sh, 4 GB in $XDG_CACHE_HOME/cautious/trixie
#   build    everything
#   test     every test that a chroot can run; those left out are named
#   cuda     a second chroot, 8 GB in trixie-cuda, as Debian's two libtorch exclude each other; compiles and links there
# A piece continues where it was interrupted; without arguments all are done. To start anew, remove the directories.
set -euo pipefail
source=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
roots=${XDG_CACHE_HOME:-$HOME/.cache}/cautious
jobs=${1:-$(nproc)}
pieces=("${@:2}")
(( ${#pieces[@]} )) || pieces=(chroot build test cuda)

say() { echo "trixie: $*"; }
refuse() { echo "trixie: $*" >&2; exit 1; }

for piece in "${pieces[@]}"; do
  [[ $piece =~ ^(chroot|build|test|cuda)$ ]] || refuse "no piece named '$piece'; choices: chroot, build, test, cuda"
done
(( EUID == 0 )) || refuse "a chroot needs root; try: sudo make trixie"
# In namespaces of its own: however this ends, no mount and no process stays behind.
if [[ ${CAUTIOUS_TRIXIE:-} != inside ]]; then
  exec env CAUTIOUS_TRIXIE=inside unshare --mount --pid --fork --kill-child "${BASH_SOURCE[0]}" "$@"
fi

# The Debian archive and the proxy that this machine's apt uses.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' 2>/dev/null | head -n 1 || true)
eval "$(apt-config shell proxy Acquire::http::Proxy 2>/dev/null || true)"
[[ -z ${proxy:-} ]] || export http_proxy=$proxy

# make_root NAME: a minimal Debian 13, unless it exists.
make_root() {
  local root=$roots/$1
  [[ ! -d $root ]] || return 0
  [[ -n $mirror ]] || refuse "apt knows no Debian archive to install from; add one to /etc/apt/sources.list, then: apt-get update"
  if ! command -v debootstrap >/dev/null; then
    say "installing debootstrap"
    apt-get -qq -y install debootstrap >/dev/null || refuse "could not install; as root: apt-get install debootstrap"
  fi
  say "a minimal Debian 13 in $root"
  mkdir -p "$roots"
  rm -rf "$root.new"
  debootstrap --variant=minbase --components=main,contrib,non-free trixie "$root.new" "$mirror" >"$root.log" 2>&1 ||
    refuse "debootstrap failed: $(tail -n 1 "$root.log"); see $root.log"
  echo force-unsafe-io >"$root.new/etc/dpkg/dpkg.cfg.d/fast"  # made again when it is lost
  mkdir -p "$root.new/source" "$root.new/build"
  mv "$root.new" "$root"
}

# within NAME command...: in that chroot, with this tree in /source, read-only.
within() {
  local root=$roots/$1
  [[ -d $root ]] || refuse "there is no $root; try: make trixie"
  if ! mountpoint -q "$root/source"; then
    mount --bind "$root" "$root"  # ip netns wants / to be a mount
    mount --bind "$source" "$root/source"
    mount -o remount,bind,ro "$root/source"
    mount --rbind /dev "$root/dev"
    mount --rbind /sys "$root/sys"
    mount -t proc proc "$root/proc"
    mount -t tmpfs tmpfs "$root/run"
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  fi
  env -u XDG_CACHE_HOME -u TMPDIR HOME=/root LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
    chroot "$root" "${@:2}"
}

versions() {  # NAME package...: what was installed, for the record
  within "$1" dpkg-query -W -f '${Package} ${Version}\n' "${@:2}" | paste -sd, | sed 's/,/, /g; s/^/trixie: /'
}

make_chroot() {
  make_root trixie
  within trixie /source/cmake/deps.sh
  within trixie apt-get clean
  versions trixie g++ cmake libtorch-dev libopenblas0-openmp python3 clang
}

# Times of change say nothing about the files of another clone: what was built from one is not used for the next.
build() {
  local made_from=$roots/trixie/build/source
  if [[ ! -e $made_from || $(<"$made_from") != "$source" ]]; then
    rm -rf "$roots/trixie/build"
    mkdir "$roots/trixie/build"
    echo "$source" >"$made_from"
  fi
  say "building"
  within trixie cmake -S /source -B /build --preset default --log-level=WARNING
  within trixie cmake --build /build -j "$jobs"
}

# Clients that fetch packages have none of this machine's settings in a chroot; what npm fetches is also missing in the pages
# that the browser's tests look at.
run_tests() {
  local without='^(browser|fetch)$'
  say "tests left out, which need a browser or fetch packages:"
  within trixie ctest --test-dir /build -N -L "$without" | grep 'Test *#'
  say "testing"
  within trixie ctest --test-dir /build -j "$jobs" -LE "$without" --no-label-summary --output-on-failure --progress
}

# Debian's package of cuDNN would fetch it from NVIDIA under NVIDIA's licence, which only a user can agree to. It is declined:
# nothing here calls cuDNN, and libtorch looks for it when it is started. CUDA 12.4 compiles with g++ up to 13.
cuda() {
  make_root trixie-cuda
  local log=$roots/trixie-cuda.log packages
  packages=$(within trixie-cuda /source/cmake/deps.sh --list | tr ' ' '\n' |
    grep -vxE 'libtorch-dev|libgloo-dev|python3-torch|chromium|npm|clang.*|libclang.*|libomp-dev')
  say "installing libtorch for CUDA, unless it is there"
  echo 'nvidia-cudnn nvidia-cudnn/question select I Decline' | within trixie-cuda debconf-set-selections
  # shellcheck disable=SC2086  # a list
  within trixie-cuda apt-get -qq -y --no-install-recommends install \
    $packages g++-13 libtorch-cuda-dev libgloo-cuda-dev nvidia-cuda-toolkit libnccl-dev >"$log" 2>&1 ||
    refuse "could not install CUDA: $(tail -n 1 "$log"); see $log"
  within trixie-cuda apt-get clean
  versions trixie-cuda g++-13 libtorch-cuda-dev nvidia-cuda-toolkit libnccl-dev
  say "building for CUDA: compiled and linked, not run"
  within trixie-cuda cmake -S /source -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=g++-13 \
    -DCAUTIOUS_TORCH=ON -DCAUTIOUS_CUDA=ON -DBUILD_TESTING=OFF --log-level=ERROR
  within trixie-cuda cmake --build /build -j "$jobs" --target cautious_train_program
}

for piece in "${pieces[@]}"; do
  case $piece in
    chroot) make_chroot ;;
    build) build ;;
    test) run_tests ;;
    cuda) cuda ;;
  esac
done
say "done: ${pieces[*]}"
