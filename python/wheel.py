"""The backend behind `pip install .` (PEP 517): CMake builds the package into build/wheel, and its files are zipped up as a
wheel. With the standard library alone, so that pip has nothing to fetch. `pack` makes a wheel of a build that exists:

    python3 python/wheel.py BUILD_DIR WHEEL_DIR
"""
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ["CMakeLists.txt", "LICENSE", "README.md", "pyproject.toml", "cmake", "include", "python", "runs", "src"]


def version():
    return re.search(r"^project\(cautious VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]


def metadata():
    return (f"Metadata-Version: 2.1\nName: cautious\nVersion: {version()}\nSummary: Optimizers with cautious weight decay\n"
            "License: Apache-2.0\nRequires-Python: >=3.9\nRequires-Dist: numpy\n")


def pack(build, folder):
    """The wheel of the package in `build`/python; returns its name."""
    package = pathlib.Path(build) / "python"
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    tag = f"{python}-{python}-{re.sub('[-.]', '_', sysconfig.get_platform())}"
    info = f"cautious-{version()}.dist-info"
    files = {str(path.relative_to(package)): path.read_bytes() for path in sorted(package.rglob("*"))
             if path.is_file() and path.suffix in (".py", ".pyi", ".so", ".typed") or path.name == "py.typed"}
    if not any("_core" in name and name.endswith(".so") for name in files):
        raise SystemExit(f"{package} has no module _core; build the target cautious_python first")
    files[f"{info}/METADATA"] = metadata().encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: cautious\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    files[f"{info}/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    sums = {name: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=") for name, data in files.items()}
    record = "".join(f"{name},sha256={sums[name]},{len(data)}\n" for name, data in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    name = f"cautious-{version()}-{tag}.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for each, data in files.items():
            wheel.writestr(each, data)
    return name


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Without it pip would build the whole package to read these lines."""
    info = pathlib.Path(metadata_directory) / f"cautious-{version()}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(metadata())
    return info.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build = ROOT / "build" / "wheel"
    subprocess.run(["cmake", "-S", ROOT, "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DCAUTIOUS_DEVELOPER=OFF",
                    "-DCAUTIOUS_PYTHON_PACKAGE=ON", f"-DCAUTIOUS_PYTHON={sys.executable}"], check=True)
    subprocess.run(["cmake", "--build", build, "--target", "cautious_python", "-j", str(os.cpu_count())], check=True)
    return pack(build, wheel_directory)


def build_sdist(sdist_directory, config_settings=None):
    stem = f"cautious-{version()}"
    with tarfile.open(pathlib.Path(sdist_directory) / f"{stem}.tar.gz", "w:gz") as archive:
        for name in SOURCES:
            archive.add(ROOT / name, f"{stem}/{name}", filter=lambda each: None if "__pycache__" in each.name else each)
        info = pathlib.Path(sdist_directory) / "PKG-INFO"
        info.write_text(metadata())
        archive.add(info, f"{stem}/PKG-INFO")
        info.unlink()
    return f"{stem}.tar.gz"


if __name__ == "__main__":
    print(pack(*sys.argv[1:3]))
