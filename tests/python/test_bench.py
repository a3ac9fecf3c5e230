"""python -m cautious.bench says what it measured. Speed is not tested."""
import json
import subprocess
import sys
import unittest


class Bench(unittest.TestCase):
    def run_bench(self, *words):
        return subprocess.run([sys.executable, "-B", "-m", "cautious.bench", *words], capture_output=True, text=True)

    def test_json_and_table(self):
        found = json.loads(self.run_bench("--case", "small", "--rounds", "1", "--threads", "1", "--json").stdout)
        self.assertEqual([row["optimizer"] for row in found["rows"]],
                         ["cautious", "torch for", "torch foreach", "CWD by hand", "the same bytes"])
        self.assertEqual({(row["tensors"], row["parameters"]) for row in found["rows"]}, {(1000, 160_000)})
        self.assertTrue(all(row["ns_per_parameter"] > 0 and row["ratio"] > 0 for row in found["rows"]))
        self.assertTrue(found["us_per_call"] > 0 and found["us_per_tensor"] > 0)
        self.assertIn("CWD by hand", self.run_bench("--case", "small", "--rounds", "1").stdout)

    def test_bad_arguments(self):
        for words in (["--case", "large"], ["--rounds", "0"], ["--threads", "0"]):
            self.assertEqual(self.run_bench(*words).returncode, 2)


if __name__ == "__main__":
    unittest.main()
