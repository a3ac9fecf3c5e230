"""Plain rules about files: length, width, links, to headings too, and paths that lead somewhere, no package-registry addresses, the README's
example and folder map."""
import functools
import re

from tree import ROOT, files, finish, read

LONGEST, WIDEST = 350, 120
# Written apart, so that this file passes its own test.
REGISTRIES = [".".join(words) for words in (
    ("deb", "debian", "org"), ("archive", "ubuntu", "com"), ("pypi", "org"), ("files", "pythonhosted", "org"),
    ("registry", "npmjs", "org"), ("crates", "io"), ("docker", "io"), ("ghcr", "io"), ("quay", "io"), ("conda", "anaconda", "org"),
    ("repo", "maven", "apache", "org"), ("proxy", "golang", "org"), ("rubygems", "org"), ("download", "pytorch", "org"))]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# What a page names in code marks: a file or folder, `optim/parts.h`, `src/linear`, `run/config_table`; or a test, `muon_test`.
NAMED_PATH = re.compile(r"`([a-z_0-9]+(?:/[A-Za-z_0-9.-]+)+)`")
NAMED_TEST = re.compile(r"`([a-z_0-9]+_test)`")
GENERATED = re.compile(r"docs/results/[a-z0-9-]+/tables/")  # by `cautious report`
PAGES_OF_TODAY = re.compile(r"^(?!docs/log\.md|CHANGELOG\.md)")  # those two may name what was

STARTS = [ROOT, ROOT / "src", ROOT / "include", ROOT / "include/cautious"]
FOLDERS = {path.name for start in STARTS for path in start.iterdir() if path.is_dir()}
TESTS = {path.stem for path in (ROOT / "tests").rglob("*_test.*")} | {path.name + "_test" for path in (ROOT / "tests").iterdir()}


@functools.cache
def anchors(page):
    """What links to the headings of a page end with."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", LINK.sub(lambda link: link[0].partition("](")[0], heading).lower()).replace(" ", "-")
            for heading in headings}


def leads_somewhere(name):
    return name.split("/")[0] not in FOLDERS or any(list(start.glob(name + end)) for start in STARTS for end in ("", ".h", ".cc"))


faults, checked = [], 0
for path in files():
    text = read(path)
    checked += 1
    lines = text.count("\n")
    if lines > LONGEST and path.suffix not in (".md", ".json"):
        faults.append(f"{path} has {lines} lines; one idea per file, at most {LONGEST}")
    faults += [f"{path} names the registry {host}; say which package, not from where" for host in REGISTRIES if host in text]
    if (path.suffix in (".md", ".cmake") or path.name == "CMakeLists.txt") and not GENERATED.match(str(path)):
        wide = [number for number, line in enumerate(text.splitlines(), 1) if len(line) > WIDEST and not line.startswith("|")]
        faults += [f"{path}:{number} is wider than {WIDEST} characters" for number in wide]
    if path.suffix == ".md":
        for target in LINK.findall(text):
            if re.match(r"[a-z]+:", target):
                continue
            page, _, anchor = target.partition("#")
            there = ROOT / path.parent / page if page else ROOT / path
            if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
                faults.append(f"{path}: the link {target} leads nowhere")
        if PAGES_OF_TODAY.match(str(path)):
            faults += [f"{path}: there is no {name}" for name in NAMED_PATH.findall(text) if not leads_somewhere(name)]
            faults += [f"{path}: there is no test {name}" for name in NAMED_TEST.findall(text) if name not in TESTS]

if f"```cpp\n{read('examples/ten_lines.cc')}```" not in read("README.md"):
    faults.append("README.md does not contain examples/ten_lines.cc word for word in a cpp block")
top = {path.parts[0] for path in files() if len(path.parts) > 1 and not path.parts[0].startswith(".")}
rooms = {"/".join(path.parts[:2]) for path in files("src") if len(path.parts) > 2}
for folder in sorted(top | rooms):
    if not re.search(rf"^\| \[{folder}\]\(", read("README.md"), re.M):
        faults.append(f"README.md has no row for the folder {folder}")
finish(faults, checked)
