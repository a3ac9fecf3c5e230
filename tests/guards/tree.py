"""What the guards share: the files of the repository and how a guard ends."""
import pathlib
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
TEXT = {".h", ".cc", ".cu", ".c", ".py", ".sh", ".cmake", ".md", ".json", ".in", ".txt", ".toml"}
NOT_OURS = {".git", "build", "out", "__pycache__"}


def files(*folders, suffixes=TEXT):
    """Every text file below the folders (all of the repository without any), as paths relative to the root."""
    for start in folders or (".",):
        for path in sorted((ROOT / start).rglob("*")):
            inside = path.relative_to(ROOT)
            hidden_or_built = NOT_OURS.intersection(inside.parts)
            if path.is_file() and not hidden_or_built and (path.suffix in suffixes or path.name == "Makefile"):
                yield inside


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def finish(faults, checked):
    """Exit 1 with one line per fault. A guard that found nothing to look at is a fault too."""
    if not checked:
        faults = ["nothing was checked: the files this guard is about are not where it looks"]
    for fault in faults:
        print(fault)
    print(f"{checked} checked, {len(faults)} faults")
    sys.exit(1 if faults else 0)
