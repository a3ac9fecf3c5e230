"""Damaged and hostile files, signals, closed descriptors, files that shrink: one line and the right code, and what was saved goes on."""
import gzip
import json
import os
import resource
import shutil
import signal
import subprocess
import time
import unittest

from train_fixture import PROGRAM, Training, run


class Checkpoints(Training):
    def setUp(self):
        super().setUp()
        self.out = self.train("run", "--checkpoint.every=10", "--checkpoint.keep=9", "--log.every=10", steps=30)
        self.older, self.newest_one = (self.out / f"checkpoints/step_{step:08}" for step in (10, 30))
        (self.out / "summary.json").unlink()

    def resume_is_refused(self, *words):
        return self.refused(3, [*words, "to continue from step 20, move"], "train", "--out", self.out, "--resume")

    def with_file(self, name, content):
        """The newest checkpoint with another content of a file, until the block ends."""
        file, test = self.newest_one / name, self

        class Changed:
            def __enter__(self):
                self.before = file.read_bytes()
                file.write_bytes(content(self.before) if callable(content) else content)

            def __exit__(self, *_):
                file.write_bytes(self.before)
                test.assertEqual(run("train", "--out", test.out, "--resume", "--quiet").returncode, 0)
        return Changed()

    def test_put_together_from_two(self):
        for name, word in (("model.safetensors", "model.safetensors: is not the file that was saved"),
                           ("optimizer.safetensors", "optimizer.safetensors: is not the file that was saved"),
                           ("state.json", "state.json: 'step' is 10; this is the checkpoint of step 30")):
            with self.subTest(name), self.with_file(name, (self.older / name).read_bytes()):
                self.resume_is_refused(word)

    def test_flipped_bits(self):
        def flipped(at):
            return lambda content: content[:at] + bytes([content[at] ^ 4]) + content[at + 1:]
        for name, at in (("model.safetensors", -1000), ("model.safetensors", -1), ("optimizer.safetensors", -5000)):
            with self.subTest(name, at=at), self.with_file(name, lambda content: flipped(at % len(content))(content)):
                self.resume_is_refused(f"{name}: is not the file that was saved: its SHA-256 is not the one in state.json")
        with self.with_file("state.json", lambda content: content.replace(b'"start_norm": 0.0', b'"start_norm": 0.1')):
            self.resume_is_refused("state.json: was changed after it was saved")

    def test_hostile_state(self):
        state = json.loads((self.newest_one / "state.json").read_text())
        del state["files"], state["sha256"]  # as before there were any
        for key, value, word in (("step", -3, "'step' is -3; valid: a whole number from 0 to 2^63-1"), ("step", None, "'step' is null"),
                                 ("step", 1e300, "'step' is 1e+300"), ("step", "30", "'step' is missing or not a number"),
                                 ("step", 2**63 - 1, "this is the checkpoint of step 30"), ("step", 2**63, "'step' is 9223372036854775808"),
                                 ("step", 20, "'step' is 20; this is the checkpoint of step 30"), ("losses", -1, "'losses' is -1"),
                                 ("losses", 2**64, "'losses' is"), ("best_step", [], "'best_step' is missing or not a number")):
            with self.subTest(key=key, value=value), self.with_file("state.json", json.dumps({**state, key: value}).encode()):
                self.resume_is_refused(word)
        with self.with_file("state.json", b'{"step":' + b"[" * 200000 + b"]" * 200000 + b"}"):
            self.resume_is_refused("state.json: not a JSON object")

    def test_deep_summary(self):
        deep = "[" * 200000 + "]" * 200000
        for summary in (f'{{"status": {deep}}}', f'{{"status": "done", "git": {deep}}}', deep, "", "[]"):
            with self.subTest(summary[:30]):
                (self.out / "summary.json").write_text(summary)
                self.refused(3, ["summary.json: not a JSON object"], "report", self.out)
        (self.out / "summary.json").write_text('{"status": 7}')
        self.refused(3, ["summary.json: 'status' is missing or not a string"], "report", self.out)


    def test_before_the_first_checkpoint(self):
        for path in self.out.glob("checkpoints/*"):
            shutil.rmtree(path)
        resume = ["train", "--out", self.out, "--resume", "--quiet"]
        self.assertEqual(run(*resume, "--change", "train.steps=12,optimizer.lr=0.002").returncode, 0)
        log = (self.out / "log.txt").read_text()
        self.assertIn("there is no checkpoint: starting with step 1; changed after step 0: ", log)
        self.assertIn("optimizer.lr from 0.005 to 0.002", log)
        self.assertIn("steps = 12 ", (self.out / "config.toml").read_text())
        self.assertEqual(run(*resume).returncode, 0)
        for path in self.out.glob("checkpoints/*"):
            shutil.rmtree(path)
        for more in ([], ["--dry-run"]):
            self.refused(3, ["the run has ended, and its checkpoints are gone"], *resume, *more)

    def test_a_dry_run_refuses_what_the_run_would(self):
        resume = ["train", "--out", self.out, "--resume", "--dry-run"]
        self.assertEqual(run(*resume).returncode, 0)
        self.refused(3, ["decay_trace.bin"], *self.arguments("other", "--optimizer.decay=random",
                                                             f"--optimizer.density_from={self.out}"), "--dry-run")
        config = self.out / "config.toml"
        config.write_text(config.read_text().replace("lr = 0.005", "lr = 0.001", 1))
        self.refused(2, ["optimizer.lr is 0.001, but step 30 was computed with 0.005"], *resume)

    def test_links_in_a_run(self):
        victim = self.folder / "victim"
        victim.write_text("precious")
        for name in ("log.txt", "metrics.jsonl", "config.toml", "checkpoints"):
            kept = self.out / name
            kept.rename(self.folder / name)
            kept.symlink_to(self.folder / name)
            self.refused(3, [f"{name}: a link"], "train", "--out", self.out, "--resume")
            kept.unlink()
            (self.folder / name).rename(kept)
        (self.out / ".lock").unlink()
        (self.out / ".lock").symlink_to(victim)
        self.refused(1, [".lock"], "train", "--out", self.out, "--resume")
        self.assertEqual(victim.read_text(), "precious")


class Surroundings(Training):
    def started(self, out, *more, steps=100000, **options):
        process = subprocess.Popen([PROGRAM, *map(str, self.arguments(out, "--checkpoint.every=100000", *more, steps=steps))],
                                   stderr=subprocess.PIPE, text=True, **options)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        rows = self.folder / out / "metrics.jsonl"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (rows.exists() and rows.stat().st_size > 0):
            time.sleep(0.02)
        return process

    def test_a_closed_terminal_saves(self):
        process = self.started("hung", "--log.every=1", "--quiet")
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.wait(timeout=60), 128 + signal.SIGHUP)
        self.assertRegex(process.stderr.read(), r"\Acautious: interrupted; step \d+ is saved; to continue: cautious train --out ")
        self.assertEqual(self.summary(self.folder / "hung")["status"], "stopped")

    def test_a_directory_that_is_moved(self):
        process = self.started("here", "--log.every=1", "--quiet")
        (self.folder / "here").rename(self.folder / "there")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=60), 1)
        self.assertIn("was moved or removed while the run worked", process.stderr.read())
        self.assertFalse((self.folder / "here").exists())

    def test_nohup_goes_on(self):
        process = self.started("nohup", "--log.every=1", "--quiet", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=60), 128 + signal.SIGTERM)

    def test_messages_that_nobody_can_read(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, *map(str, self.arguments("full"))], stderr=full)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.summary(self.folder / "full")["status"], "done")

    def test_a_reader_that_goes_away(self):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([PROGRAM, *map(str, self.arguments("unread"))], stderr=write)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.summary(self.folder / "unread")["status"], "done")
        self.assertEqual(subprocess.run([PROGRAM, "--xx"], stderr=write).returncode, 2)
        self.assertEqual(subprocess.run([PROGRAM, "data", "list"], stdout=write).returncode, -signal.SIGPIPE)
        os.close(write)

    def test_records_that_are_pipes(self):
        out = self.train("piped", steps=4)
        (out / "summary.json").unlink()
        os.mkfifo(out / "summary.json")
        self.refused(3, ["summary.json", "not a regular file"], "report", out)
        self.assertIn("damaged", run("runs", self.folder).stdout)

    def test_names_that_a_terminal_would_obey(self):
        name = self.folder / "a\nb\x1b[31m\u009b1m"
        done = run("train", "--resume", "--out", name)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertFalse(set("\x1b\u009b") & set(done.stderr), repr(done.stderr))

    def test_closed_descriptors(self):
        usual = (self.train("usual") / "config.toml").read_text()
        for i, closed in enumerate(((0,), (1,), (2,), (0, 1, 2))):
            with self.subTest(closed):
                out = f"closed-{i}"
                line = " ".join(f"{number}>&-" for number in closed)
                subprocess.run(["sh", "-c", f'exec "$0" "$@" {line}', PROGRAM, *map(str, self.arguments(out))], check=True,
                               capture_output=True)
                self.assertEqual((self.folder / out / "config.toml").read_text(), usual)

    def test_a_token_file_that_is_cut_while_it_is_read(self):
        tokens = self.folder / "all.tokens"
        self.assertEqual(run("tokenize", self.corpus, "--tokenizer", "bytes", "--out", tokens).returncode, 0)
        self.trained_on = tokens
        process = self.started("cut", "--log.every=1", "--quiet")
        os.truncate(tokens, 4096)
        self.assertEqual(process.wait(timeout=60), 3)
        self.assertRegex(process.stderr.read(), rf"\Acautious: {tokens}: was cut short while it was read, or its disk failed; .*\n\Z")

    def test_a_limit_on_the_size_of_files(self):
        done = run(*self.arguments("limited", "--quiet"),
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20000, resource.RLIM_INFINITY)))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"\Acautious: .*File too large.*\n\Z")

    def test_a_gzip_bomb(self):
        bomb = self.folder / "bomb.txt.gz"
        bomb.write_bytes(32 * gzip.compress(bytes(1 << 26)))  # 2 GiB in 2 MB
        done = run("tokenize", bomb, "--tokenizer", "bytes", "--out", self.folder / "bomb.tokens",
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)))
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, rf"\Acautious: {bomb}: not UTF-8 text: byte 0x00 at byte 0 .*\n\Z")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["bomb.txt.gz", "corpus.txt"])

    def test_a_run_of_a_study_that_is_killed_is_a_failure_and_is_made_again(self):
        spared = self.folder / "spared"
        line = f'[ -e "{spared}" ] || [ $CAUTIOUS_SEED != 1 ] || kill -9 $$; echo 1.$CAUTIOUS_SEED'
        command = ["compare", "--command", line, "--lr", "1e-3", "--lambdas", "0.1", "--seeds", "2", "--tune-seeds", "1", "--quiet",
                   "--out", self.folder / "study"]
        done = run(*command)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"\Acautious: \d+ of \d+ runs failed, the first: .*signal 9.*; to try again: ")
        spared.touch()
        self.assertEqual(run(*command).returncode, 0)

    def test_a_prompt_that_waits_ends_with_a_signal(self):
        out = self.train("asked", steps=2)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number), subprocess.Popen([PROGRAM, "sample", out, "--chat", "--tokens", "1"], stdin=subprocess.PIPE,
                                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
                process.stdin.write("Why?\n")
                process.stdin.flush()
                process.stdout.readline()  # the answer; now the next line is waited for
                process.send_signal(number)
                self.assertEqual(process.wait(timeout=20), 128 + number)


if __name__ == "__main__":
    unittest.main()
