"""Values of options as verbs read them: whole numbers as 1e3, lists with blanks, ~ behind an =."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()


class Values(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("text.txt", "a.txt", "b.txt"):
            (self.folder / name).write_text("a line of a text\n" * 1000)

    def run_here(self, *command, **more):
        return subprocess.run([PROGRAM, *map(str, command)], capture_output=True, text=True, **{"cwd": self.folder, **more})

    def test_numbers_and_lists_are_read_as_in_keys(self):
        compare = ["compare", "--preset", "nano-100k", "--data", "text.txt", "--dry-run"]
        for digits, other in ((["--steps", 1000, "--seeds=3", "--jobs", 2], ["--steps", "1e3", "--seeds=3.0", "--jobs", "2e0"]),
                              (["--steps=40", "--lambdas=0.1,0.2", "--lr", "0.001,0.002"],
                               ["--steps=4e1", "--lambdas= 0.1, 0.2", "--lr", "0.001 , 0.002"]),
                              (["--steps=40", "--data.val_path=a.txt,b.txt"], ["--steps=40", "--data.val_path=a.txt , b.txt"])):
            told = [self.run_here(*compare, *words) for words in (digits, other)]
            self.assertEqual(*((done.returncode, done.stdout, done.stderr) for done in told))
            self.assertEqual(told[0].returncode, 0, told[0].stderr)
        for why, *options in (("--steps is '1.5', not a whole number", "--steps", "1.5"),
                              ("--jobs is '1.5', not a whole number", "--jobs", "1.5"),
                              ("--jobs is '99999999999', out of range", "--jobs", "99999999999"),
                              ("--jobs is 'two', not a number", "--jobs", "two")):
            done = self.run_here(*compare, *options)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
            self.assertIn(why, done.stderr)

    def test_home(self):
        home = {**os.environ, "HOME": str(self.folder)}
        done = self.run_here("tokenize", "text.txt", "--tokenizer=bytes", "--out=~/text.tokens", env=home)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / "text.tokens").exists())
        self.assertFalse((self.folder / "~").exists())
        done = self.run_here("compare", "--data=~/text.txt", "--data.val_path=~/nothing.txt", "--preset", "nano-100k", "--steps=40",
                             "--dry-run", cwd="/", env=home)
        self.assertIn(f"data.val_path: no file or folder '{self.folder}/nothing.txt'", done.stderr)


if __name__ == "__main__":
    unittest.main()
