"""`cautious watch` and `cautious report` from end to end: the page follows the files, only this machine is served, Ctrl-C stops it.

usage: watch_test.py PROGRAM STUDY_SAMPLE_WRITE
"""
import base64
import hashlib
import http.client
import itertools
import os
import pathlib
import re
import signal
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

PROGRAM, WRITE_SAMPLE = sys.argv[1:3]


def get(address):
    with urllib.request.urlopen(address, timeout=20) as answer:
        return answer.read().decode()


class Watch(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.study = self.folder / "study"
        self.empty = self.folder / "empty"
        self.empty.mkdir()
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

    def peak_megabytes(self):
        status = pathlib.Path(f"/proc/{self.server.pid}/status").read_text()
        return int(re.search(r"^VmHWM:\s+(\d+) kB$", status, re.M)[1]) / 1024

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
        self.assertTrue(f'<meta name="stamp" content="{stamp}">' in page)
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

    def test_a_folder_of_runs(self):
        self.assertTrue("<h1>Runs in runs</h1>" in get(self.start(self.study / "runs")))
        listed = subprocess.run([PROGRAM, "runs", self.study], capture_output=True, text=True, timeout=30, check=True).stdout
        self.assertEqual(len(listed.splitlines()), 1 + len(list((self.study / "runs").iterdir())))
        self.assertRegex(listed.splitlines()[1], r"^runs/cwd_weight_decay=0.1_seed=0_\w+ +done +1000 .*optimizer.weight_decay=0.1")

    def test_serves_this_machine_only(self):
        port = int(self.start(self.study).rstrip("/").rsplit(":", 1)[1])
        with socket.socket() as other:
            with self.assertRaises(OSError):
                other.settimeout(5)
                other.connect(("127.0.0.2", port))

    def test_only_under_names_of_this_machine_and_with_our_scripts_only(self):
        address = self.start(self.study)
        port = int(address.rstrip("/").rsplit(":", 1)[1])
        for path in ("/", "/stamp", "/none"):
            for host, allowed in ((f"127.0.0.1:{port}", True), (f"localhost:{port}", True), ("localhost:9000", True), ("localhost", True),
                                  (f"evil.example:{port}", False), ("127.0.0.1.evil.example", False), ("", False)):
                with self.subTest(path=path, host=host):
                    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
                    connection.putrequest("GET", path, skip_host=True)
                    connection.putheader("Host", host)
                    connection.endheaders()
                    answer = connection.getresponse()
                    self.assertEqual(answer.status, 403 if not allowed else 404 if path == "/none" else 200)
                    self.assertNotIn("runs done" if not allowed else "</none>", answer.read().decode())
                    policy = answer.getheader("Content-Security-Policy")
                    connection.close()
        page = get(address)
        self.assertIn(f'<meta http-equiv="Content-Security-Policy" content="{policy}">', page)
        scripts = re.findall(r"<script>(.*?)</script>", page, re.S)
        self.assertGreaterEqual(len(scripts), 2)
        for script in scripts:
            digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
            self.assertIn(f"'sha256-{digest}'", policy)
        self.assertIsNone(re.search(r"<[^>]* on[a-z]+=", re.sub(r"<script.*?</script>", "", page, flags=re.S)))

    def test_names_are_text(self):
        run = sorted((self.study / "runs").iterdir())[0]
        hostile = self.folder / '<img src=x onerror="alert(1)">'
        shutil.copytree(run, hostile)
        page = get(self.start(hostile))
        self.assertNotIn("<img src=x", page)
        self.assertIn("&lt;img src=x", page)

    def test_readers_that_come_to_no_end(self):
        address = self.start(self.study)
        port = int(address.rstrip("/").rsplit(":", 1)[1])
        stop = threading.Event()
        readers = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(40)]

        def drip():
            for line in itertools.cycle([b"GET / HTTP/1.1\r\n"] + 100 * [b"X-More: 1\r\n"]):
                for reader in readers:
                    try:
                        reader.sendall(line)
                    except OSError:  # it was shown the door
                        pass
                if stop.wait(0.5):
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            time.sleep(1)
            self.assertIn("runs done", get(address))
            self.server.send_signal(signal.SIGINT)
            self.assertEqual(self.server.wait(timeout=10), 0)
        finally:
            stop.set()
            dripping.join()
            for reader in readers:
                reader.close()

    def test_requests_that_are_too_much(self):
        address = self.start(self.study)
        port = int(address.rstrip("/").rsplit(":", 1)[1])
        page = get(address)
        million = 1_000_000
        for name, start, more, times in (("a line of 400 MB", b"GET /", million * b"a", 400),
                                         ("a header of 400 MB", b"GET / HTTP/1.1\r\nX-More: ", million * b"a", 400),
                                         ("ten million headers", b"GET / HTTP/1.1\r\nHost: localhost\r\n", million * b"A: b\r\n", 10)):
            with self.subTest(name), socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
                with self.assertRaises(ConnectionError):
                    connection.sendall(start)
                    for _ in range(times):
                        connection.sendall(more)
        for ranges in ("0-,", "0-9,"):
            asked = urllib.request.Request(address, headers={"Range": "bytes=" + 8000 // len(ranges) * ranges + "0-"})
            with urllib.request.urlopen(asked, timeout=20) as answer:
                self.assertEqual(answer.status, 200)
                self.assertTrue(answer.read().decode() == page)
        with self.assertRaises(urllib.error.HTTPError) as said:
            urllib.request.urlopen(address, data=b"something", timeout=20)
        self.assertEqual(said.exception.code, 405)
        said.exception.close()
        self.assertTrue(get(address) == page)
        self.assertLess(self.peak_megabytes(), 300)

    def test_a_port_that_is_taken(self):
        port = self.start(self.study).rstrip("/").rsplit(":", 1)[1]
        code, words = self.refused("watch", self.study, "--port", port)
        self.assertEqual(code, 1)
        self.assertIn(f"port {port} on 127.0.0.1 cannot be used", words)

    def test_bad_words(self):
        for arguments, code, words in (
                (("watch", self.study, "--port", "65536"), 2, "--port is 65536; valid: [0, 65535]"),
                (("watch", self.study / "runs" / "none"), 2, "is not a directory"),
                (("watch", self.empty), 2, "is neither a study (it has no plan.toml) nor a run (no config.toml)"),
                (("runs", self.empty), 2, "there are no runs in"),
                (("runs", self.empty / "none"), 2, "cannot be read: No such file or directory"),
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
