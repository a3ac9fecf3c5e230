"""Include directions: a folder of src/ knows only the folders below it (docs/design.md, "Layers")."""
import re

from tree import files, finish, read

# Folder -> folders of src/ it may include besides itself. Public headers are open to all.
MAY_INCLUDE = {
    "io": set(),
    "kernels": set(),
    "linear": set(),
    "recipe": set(),
    "optim": {"kernels", "linear", "recipe", "io"},
    "adapters": {"kernels", "linear", "optim", "recipe"},
    "data": {"io", "recipe"},
    "train": {"data", "io", "linear", "recipe"},
    "run": {"data", "io", "recipe", "train"},
    "study": {"data", "io", "recipe", "report", "run"},
    "engine": {"data", "io", "linear", "recipe", "run", "train"},
    "lab": {"io", "recipe", "report"},
    "report": {"io"},
    "bench": {"data", "kernels", "lab", "linear", "optim", "recipe", "io", "train"},
    "cli": {"bench", "data", "engine", "io", "lab", "linear", "recipe", "report", "run", "study", "train"},
}
# Public headers that a folder must do without: io knows nothing above it, report reads files only.
ONLY_PUBLIC = {"io": {"error.h", "element.h"}, "report": {"error.h"}}
# Where libtorch may be included, besides the adapter's header, the training benchmark and the engine's verbs.
WITH_TORCH = {"adapters", "engine", "train"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)

faults, checked = [], 0
for path in [*files("src", "include", "bench", suffixes={".h", ".cc"})]:
    parts = path.parts
    folder = "public" if parts[0] == "include" else "bench" if parts[0] == "bench" else parts[1]
    if folder != "public" and folder not in MAY_INCLUDE:
        faults.append(f"{path}: src/{folder} has no place in MAY_INCLUDE of tests/guards/includes.py")
        continue
    for bracket, name in INCLUDE.findall(read(path)):
        checked += 1
        if name.startswith(("torch/", "ATen/", "c10/")):
            if not (folder in WITH_TORCH or path.name in ("torch.h", "train_grid.cc") or "engine" in path.parts):
                faults.append(f"{path}: includes {name}; the core does not know libtorch")
        elif name.startswith("cautious/"):
            if bracket == '"':
                faults.append(f'{path}: "{name}" is a public header; write <{name}>')
            header = name.removeprefix("cautious/")
            if folder in ONLY_PUBLIC and header not in ONLY_PUBLIC[folder]:
                faults.append(f"{path}: src/{folder} may include {sorted(ONLY_PUBLIC[folder])} only, not <{name}>")
        elif bracket == '"':
            target = name.split("/")[0] if "/" in name else folder
            if folder == "public":
                faults.append(f'{path}: a public header includes "{name}"; only <cautious/...> is installed')
            elif target != folder and target not in MAY_INCLUDE[folder]:
                allowed = ", ".join(sorted(MAY_INCLUDE[folder])) or "none"
                faults.append(f'{path}: src/{folder} must not include "{name}"; folders it may: {allowed}')
finish(faults, checked)
