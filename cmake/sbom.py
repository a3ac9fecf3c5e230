"""What the programs are made of, as a CycloneDX list: every shared library that the loader takes and the headers that were compiled
in, by Debian's packages and their versions; and uPlot, which reports carry.

usage: sbom.py VERSION PROGRAM...     prints the JSON
"""
import json
import pathlib
import re
import subprocess
import sys

HEADERS = ["nlohmann-json3-dev", "libcli11-dev", "libboost-math-dev", "libboost-dev", "libeigen3-dev"]


def output(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout


def packages_of(files):
    """Debian's packages that own them; those of nobody under their own names."""
    found = {}
    for file in files:
        names = {file, file.removeprefix("/usr")}  # a package may have put it into /lib, which is now a link
        owner = re.search(r"^(?!diversion)([^:\n]+)(?::\w+)?: ", "".join(output("dpkg", "-S", name) for name in names), re.M)
        found.setdefault(owner[1] if owner else pathlib.Path(file).name, []).append(pathlib.Path(file).name)
    return found


def version_of(package):
    return output("dpkg-query", "-W", "-f=${Version}", package)


def component(name, version, files):
    return {"type": "library", "name": name, "version": version, "properties": [{"name": "file", "value": file} for file in files]}


def main():
    version, programs = sys.argv[1], sys.argv[2:]
    libraries = sorted({match for program in programs for match in re.findall(r"=> (/\S+)", output("ldd", program))})
    real = sorted({str(pathlib.Path(library).resolve()) for library in libraries})
    components = [component(name, version_of(name), files) for name, files in sorted(packages_of(real).items())]
    components += [component(name, version_of(name), []) for name in HEADERS if version_of(name)]
    assets = (pathlib.Path(__file__).parent / "page_assets.cmake").read_text()
    components.append(component("uplot", re.search(r"set\(package uplot@([\d.]+)\)", assets)[1], []))
    print(json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
                      "metadata": {"component": {"type": "application", "name": "cautious", "version": version}},
                      "components": components}, indent=2))


main()
