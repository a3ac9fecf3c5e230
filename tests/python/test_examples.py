"""Every program of examples/python runs and learns, with the built package; transformers and timm are the stand-ins of stubs/.

    PYTHONPATH=build/python /usr/bin/python3 -B tests/python/test_examples.py
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Examples(unittest.TestCase):
    def lines(self, name, folder=None):
        """The numbers of every line that the example prints."""
        path = os.pathsep.join([str(ROOT / "tests/python/stubs"), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run([sys.executable, "-B", ROOT / "examples/python" / name], capture_output=True, text=True, cwd=folder,
                              env={**os.environ, "PYTHONPATH": path})
        self.assertEqual(done.returncode, 0, done.stderr)
        return [(line, [float(a) for a in re.findall(r"\d+\.\d+", line)]) for line in done.stdout.splitlines()]

    def test_every_example_has_a_test(self):
        tested = {name[5:] + ".py" for name in dir(self) if name.startswith("test_") and "every" not in name}
        self.assertEqual(tested, {path.name for path in (ROOT / "examples/python").glob("*.py")})

    def test_cnn(self):
        lines = self.lines("cnn.py")
        self.assertEqual(len(lines), 5)
        self.assertGreater(lines[-1][1][1], 0.85)

    def test_compare_cnn(self):
        with tempfile.TemporaryDirectory() as folder:
            text = "\n".join(line for line, _ in self.lines("compare_cnn.py", folder))
            self.assertTrue((pathlib.Path(folder) / "compare-cnn" / "report.html").exists())
        for part in ("none", "plain", "cwd", "shuffled", "opposed", "nats"):
            self.assertIn(part, text)

    def test_hf_trainer(self):
        ((_, (accuracy,)),) = self.lines("hf_trainer.py")
        self.assertGreater(accuracy, 0.9)

    def falls(self, name, runs):
        lines = self.lines(name)
        self.assertEqual(len(lines), 2 * runs)
        for (_, (first,)), (line, (last,)) in zip(lines[::2], lines[1::2]):
            self.assertLess(last, 0.9 * first, line)

    def test_nanogpt(self):
        self.falls("nanogpt.py", 2)

    def test_timm_factory(self):
        self.falls("timm_factory.py", 2)


if __name__ == "__main__":
    unittest.main()
