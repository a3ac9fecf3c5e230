"""The ten slowest parts of a build and its tests. usage: slowest.py NINJA_LOG STARTED TEST_LOG

Compilations count per target, unless they ended before STARTED (seconds since 1970): then this build did not need them."""
import collections
import re
import sys

ninja_log, started, test_log = sys.argv[1], float(sys.argv[2]), sys.argv[3]
parts = collections.Counter()
with open(ninja_log, encoding="utf-8") as lines:
    for line in lines:
        fields = line.rstrip("\n").split("\t")
        if len(fields) != 5:
            continue
        begin, end, modified, output = int(fields[0]), int(fields[1]), int(fields[2]) / 1e9, fields[3]
        found = re.search(r"CMakeFiles/([^/]+)\.dir/", output)
        if found and modified >= started:
            parts[f"compile {found[1]}"] += (end - begin) / 1000
with open(test_log, encoding="utf-8", errors="replace") as lines:
    for line in lines:
        found = re.search(r"Test +#\d+: (\S+) .*?(\d+\.\d+) sec", line)
        if found:
            parts[f"test {found[1]}"] += float(found[2])
print("the ten slowest parts, in seconds:")
for name, seconds in parts.most_common(10):
    print(f"{seconds:7.1f}  {name}")
