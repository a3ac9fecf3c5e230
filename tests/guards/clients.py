"""A private header earns its file: something besides its own .cc includes it, and if that is one file only, then from another
room, or they and its own .cc would be too long for one."""
import collections
import re

from tree import files, finish, read

LONGEST = 350  # as in text.py
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def room(path):
    return "/".join(path.parts[:2]) if path.parts[0] == "src" else path.parts[0]


def lines(path):
    return read(path).count("\n")


def own(header):
    """The .cc of a header, if it has one: whoever folds the one in takes the other too."""
    return [header.with_suffix(".cc")] if header.with_suffix(".cc") in sources else []


def named(path):
    """How an #include names a header: from src/ or from the root."""
    return str(path.relative_to("src") if path.parts[0] == "src" else path)


sources = list(files("src", "lab", "bench", "python", suffixes={".h", ".cc", ".cu"}))
headers = {named(path): path for path in sources if path.suffix == ".h" and path.parts[0] != "python"}
clients = collections.defaultdict(set)
for path in sources:
    for name in INCLUDE.findall(read(path)):
        if name in headers and path != headers[name].with_suffix(".cc"):
            clients[name].add(path)

faults = []
for name, header in headers.items():
    users = clients[name]
    if not users:
        faults.append(f"{header}: nothing includes it but its own .cc or a test; fold it into the .cc or remove it")
    elif len(users) == 1 and all(room(user) == room(header) and sum(map(lines, [user, header, *own(header)])) <= LONGEST
                                 for user in users):
        faults.append(f"{header}: only {next(iter(users))} includes it; fold it into that file")
finish(faults, len(headers))
