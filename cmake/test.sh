#!/usr/bin/env bash
# What `make test` does: builds everything, runs every test, and ends with the ten slowest parts and the total.
# usage: cmake/test.sh [JOBS]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
jobs=${1:-$(nproc)}
log=build/test.log
rm -f "$log"
started=$(date +%s)

cmake --preset default --log-level=WARNING
built=$(date +%s)
cmake --build --preset default -j "$jobs"
tested=$(date +%s)
result=0
ctest --preset default -j "$jobs" --no-label-summary --progress --output-log "$log" || result=$?
done=$(date +%s)

python3 -B cmake/slowest.py build/.ninja_log "$built" "$log"
# times: the shell's own time, then that of all it started, as 12m34.567s. A pipe would ask a new shell.
times >build/times
cpu=$(awk 'NR == 2 { split($1, u, /[ms]/); split($2, s, /[ms]/); printf "%.1f", u[1] + s[1] + (u[2] + s[2]) / 60 }' build/times)
printf 'total %d:%02d: build %d:%02d, tests %d:%02d; %s CPU minutes\n' \
  $(((done - started) / 60)) $(((done - started) % 60)) $(((tested - started) / 60)) $(((tested - started) % 60)) \
  $(((done - tested) / 60)) $(((done - tested) % 60)) "$cpu"
grep 'tests passed' "$log"
exit "$result"
