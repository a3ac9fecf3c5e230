"""The wheel that pip makes, from the build that is here: it installs without a network, and what it installs works
elsewhere."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

import cautious

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(cautious.__file__).parent.parent.parent
PROGRAM = """
import numpy, torch, cautious.torch
x = torch.nn.Parameter(torch.ones(3))
x.grad = torch.ones(3)
cautious.torch.AdamW([x], lr=0.5).step()
print(cautious.__file__, float(x[0]) < 1)
"""


class Wheel(unittest.TestCase):
    def test_installs_and_works(self):
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run([sys.executable, "-B", ROOT / "python/wheel.py", BUILD, folder], check=True,
                                  capture_output=True, text=True)
            wheel = pathlib.Path(folder) / made.stdout.strip()
            names = set(zipfile.ZipFile(wheel).namelist())
            self.assertTrue({"cautious/__init__.py", "cautious/py.typed", "cautious/_core.pyi",
                             "cautious/torch/__init__.py"} <= names)
            target = pathlib.Path(folder) / "target"
            subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", target,
                            wheel], check=True,
                           env={**os.environ, "PIP_ROOT_USER_ACTION": "ignore", "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
            done = subprocess.run([sys.executable, "-B", "-c", PROGRAM], check=True, capture_output=True, text=True, cwd=folder,
                                  env={**os.environ, "PYTHONPATH": str(target)})
            self.assertEqual(done.stdout.split(), [str(target / "cautious/__init__.py"), "True"])


if __name__ == "__main__":
    unittest.main()
