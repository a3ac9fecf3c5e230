"""Include directions: a room knows only the rooms below it (docs/design.md, "Layers")."""
import re

from tree import files, finish, read

# Room -> rooms it may include besides itself. Public headers are open to all.
MAY_INCLUDE = {
    "base": set(),
    "kernels": set(),
    "linear": {"base"},
    "optim": {"base", "kernels", "linear"},
    "c": {"base"},
    "torch": {"base", "kernels", "linear", "optim"},
    "data": {"base"},
    "model": {"base", "data", "linear"},
    "run": {"base", "data", "model"},
    "report": {"base"},
    "study": {"base", "data", "model", "report", "run"},
    "ranks": {"base"},
    "train": {"base", "data", "linear", "model", "ranks", "run"},
    "bench": {"base", "data", "kernels", "lab", "linear", "model", "optim"},
    "cli": {"base", "bench", "data", "linear", "model", "ranks", "report", "run", "study", "train"},
    "lab": {"base", "cli", "report"},
    "python": {"base", "run", "study"},
}
# Public headers that a room must do without: base knows nothing above it, report reads files only.
ONLY_PUBLIC = {"base": {"error.h", "detail/field.h", "optimizer.h"}, "report": {"error.h"}}
# Where libtorch may be included, besides the public header, the benchmarks of models and the verbs of cautious-train.
WITH_TORCH = {"torch", "train", "model", "ranks"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)

faults, checked = [], 0
for path in files("src", "include", "bench", "lab", "python", suffixes={".h", ".cc", ".cu"}):
    parts = path.parts
    folder = "public" if parts[0] == "include" else parts[1] if parts[0] == "src" else parts[0]
    if folder != "public" and folder not in MAY_INCLUDE:
        faults.append(f"{path}: the room {folder} is missing from MAY_INCLUDE of tests/guards/includes.py")
        continue
    for bracket, name in INCLUDE.findall(read(path)):
        checked += 1
        if name.startswith(("torch/", "ATen/", "c10/")):
            grids = tuple(f"{kind}_grid.cc" for kind in ("train", "image", "decode", "eval", "peers"))
            if not (folder in WITH_TORCH or path.name in ("torch.h", *grids) or parts[1:3] == ("cli", "train")):
                faults.append(f"{path}: includes {name}; the core does not know libtorch")
        elif name.startswith("cautious/"):
            if bracket == '"':
                faults.append(f'{path}: "{name}" is a public header; write <{name}>')
            header = name.removeprefix("cautious/")
            if folder in ONLY_PUBLIC and header not in ONLY_PUBLIC[folder]:
                faults.append(f"{path}: {folder} may include {sorted(ONLY_PUBLIC[folder])} only, not <{name}>")
        elif bracket == '"':
            target = name.split("/")[0] if "/" in name else folder
            if folder == "public":
                faults.append(f'{path}: a public header includes "{name}"; only <cautious/...> is installed')
            elif target != folder and target not in MAY_INCLUDE[folder]:
                allowed = ", ".join(sorted(MAY_INCLUDE[folder])) or "none"
                faults.append(f'{path}: {folder} must not include "{name}"; folders it may: {allowed}')
finish(faults, checked)
