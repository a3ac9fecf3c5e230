"""`cautious watch` and `cautious report` from end to end: the page follows the files, only this machine is served, Ctrl-C stops it.

usage: watch_test.py PROGRAM STUDY_SAMPLE_WRITE
"""
import os
import pathlib
import signal
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.request

PROGRAM, WRITE_SAMPLE = sys.argv[1:3]


def get(address):
    with urllib.request.urlopen(address, timeout=20) as answer:
        return answer.read().decode()


class Watch(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.study = self.folder / "study"
        subprocess.run([WRITE_SAMPLE, self.study], check=True)
        self.server = None

    def tearDown(self):
        if self.server:
            if self.server.poll() is None:
                self.server.kill()
            self.server.communicate()
        shutil.rmtree(self.folder)

    def start(self, directory, port=0):
        self.server = subprocess.Popen([PROGRAM, "watch", directory, "--port", str(port)], text=True, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, env={**os.environ, "http_proxy": ""})
        return self.server.stdout.readline().strip()

    def refused(self, *arguments):
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=30)
        self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1), done.stderr)
        return done.returncode, done.stderr

    def test_follows_the_files_and_ends_with_ctrl_c(self):
        before = sorted(path for path in self.study.rglob("*"))
        address = self.start(self.study)
        self.assertRegex(address, r"^http://127\.0\.0\.1:\d+/$")
        page, stamp = get(address), get(address + "stamp")
        self.assertTrue("35 of 35 runs done" in page)
        self.assertTrue(f"now !== '{stamp}'" in page)
        self.assertTrue(get(address) == page)
        shutil.rmtree(sorted((self.study / "runs").iterdir())[0])
        self.assertNotEqual(get(address + "stamp"), stamp)
        self.assertTrue("34 of 35 runs done" in get(address))
        next((self.study / "runs").glob("cwd_weight_decay=1_seed=1_*/metrics.jsonl")).write_text("<nonsense>\n")
        page = get(address)
        self.assertLess(len(page), 2000)
        self.assertIn("metrics.jsonl: line 1", page)
        self.assertIn("location.reload()", page)
        self.assertNotIn("<nonsense>", page)
        self.assertLess(set(self.study.rglob("*")), set(before))
        self.server.send_signal(signal.SIGINT)
        self.assertEqual(self.server.wait(timeout=10), 0)

    def test_a_run(self):
        run = sorted((self.study / "runs").iterdir())[0]
        self.assertTrue(f"<h1>Run {run.name}</h1>" in get(self.start(run)))

    def test_serves_this_machine_only(self):
        port = int(self.start(self.study).rstrip("/").rsplit(":", 1)[1])
        with socket.socket() as other:
            with self.assertRaises(OSError):
                other.settimeout(5)
                other.connect(("127.0.0.2", port))

    def test_a_port_that_is_taken(self):
        port = self.start(self.study).rstrip("/").rsplit(":", 1)[1]
        code, words = self.refused("watch", self.study, "--port", port)
        self.assertEqual(code, 1)
        self.assertIn(f"port {port} on 127.0.0.1 cannot be used", words)

    def test_bad_words(self):
        for arguments, code, words in (
                (("watch", self.study, "--port", "65536"), 2, "--port is 65536; valid: [0, 65535]"),
                (("watch", self.folder), 2, "is neither a study (it has no plan.toml) nor a run (no config.toml)"),
                (("report", self.folder / "none"), 2, "is not a directory"),
                (("report",), 2, "DIR")):
            with self.subTest(arguments):
                found, said = self.refused(*arguments)
                self.assertEqual(found, code, said)
                self.assertIn(words, said)

    def test_a_directory_that_cannot_be_written(self):
        (self.study / "tables").write_text("")
        code, words = self.refused("report", self.study)
        self.assertEqual(code, 1)
        self.assertIn("tables: cannot be made", words)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
