"""What happens to the other ranks when one dies, hangs, is cut off or was started wrongly; and ranks on two machines, which are
network namespaces here."""
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import unittest

from train_fixture import PROGRAM, Training, run

LONG = 100000  # steps; ended from outside


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Started(Training):
    def start(self, rank, ranks, command, port, address="127.0.0.1", prefix=()):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": "0", "MASTER_ADDR": address,
                       "MASTER_PORT": str(port)}
        process = subprocess.Popen([*prefix, PROGRAM, *map(str, command)], env=environment, text=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def start_all(self, ranks, command):
        port = free_port()
        return [self.start(rank, ranks, command, port) for rank in range(ranks)]

    def long_run(self, out, timeout):
        return self.arguments(out, "--quiet", "--checkpoint.every=5", f"--train.timeout={timeout}", "--eval.every=0", steps=LONG)

    def wait_for_checkpoint(self, out):
        folder = self.folder / out / "checkpoints"
        while not (folder.exists() and len(list(folder.glob("step_*"))) >= 1):
            time.sleep(0.02)

    def expect(self, process, code, *words):
        _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, said)
        self.assertEqual(len(said.splitlines()), 1, said)
        self.assertTrue(said.startswith("cautious: "), said)
        for word in words:
            self.assertRegex(said, word)
        return said


class Ranks(Started):
    def test_a_rank_that_is_killed_ends_the_run_and_any_number_continue_it(self):
        for victim in (2, 0):  # the last, and the one that keeps board and files
            out = f"killed-{victim}"
            processes = self.start_all(3, self.long_run(out, 60) + ["--train.batch_size=12"])
            self.wait_for_checkpoint(out)
            processes[victim].send_signal(signal.SIGKILL)
            for rank, process in enumerate(processes):
                if rank == victim:
                    process.communicate()
                else:
                    said = self.expect(process, 1, rf"in step \d+, rank {victim} (on|at) \S+ has died")
                    self.assertEqual("--resume" in said, rank == 0, said)
            for folder in (self.folder / out / "checkpoints").iterdir():
                if folder.name > "step_00000005":
                    shutil.rmtree(folder)
            done = run("launch", "-n", 2, "train", "--out", self.folder / out, "--resume", "--quiet",
                       "--change", "train.steps=12")  # it is long enough
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.summary(self.folder / out)["status"], "done")

    def test_a_rank_that_hangs_is_given_up(self):
        for victim in (1, 0):
            processes = self.start_all(2, self.long_run(f"hanging-{victim}", 2))
            self.wait_for_checkpoint(f"hanging-{victim}")
            processes[victim].send_signal(signal.SIGSTOP)
            self.expect(processes[1 - victim], 1, rf"in step \d+, rank {victim} (on|at) \S+ has not been heard of for 2 s")
            processes[victim].send_signal(signal.SIGCONT)
            self.expect(processes[victim], 1, r"rank \d (on|at) \S+ (has|stopped)")

    def test_an_interrupted_rank_saves_and_ends_all(self):
        processes = self.start_all(2, self.long_run("interrupted", 60))
        self.wait_for_checkpoint("interrupted")
        processes[1].send_signal(signal.SIGTERM)
        self.expect(processes[0], 1, "another rank was interrupted; step \\d+ is saved; to continue, with any number of ranks: ")
        _, said = processes[1].communicate(timeout=60)
        self.assertEqual((processes[1].returncode, said), (143, ""))

    def test_ranks_that_were_started_wrongly_say_so(self):
        port = free_port()
        other = self.arguments("other", "--quiet", "--optimizer.lr=1e-4")
        one = self.start(0, 2, self.arguments("other", "--quiet"), port)
        two = self.start(1, 2, other, port)
        self.expect(one, 1, "rank 1 on .* stopped: rank 1 has another configuration than rank 0: 'lr = 0.0001")
        self.expect(two, 2, "rank 1 has another configuration than rank 0: 'lr = 0.0001.*, rank 0 has 'lr = 0.005")
        self.assertFalse((self.folder / "other").exists())

        port = free_port()
        twins = [self.start(1, 3, self.arguments("twins", "--train.batch_size=12"), port) for _ in range(2)]
        first = self.start(0, 3, self.arguments("twins", "--train.batch_size=12"), port)
        for process in (first, *twins):
            self.expect(process, 1, "two processes say they are rank 1")

        port = free_port()
        few, many = self.start(0, 2, self.arguments("few", "--train.batch_size=12"), port), self.start(1, 3, self.arguments("few", "--train.batch_size=12"), port)
        for process in (few, many):
            self.expect(process, 1, "was told of 3 ranks, rank 0 of 2; WORLD_SIZE must be the same everywhere")

        alone = self.start(0, 2, self.arguments("alone", "--train.timeout=1"), free_port())
        self.expect(alone, 1, "of 2 ranks, rank 1 did not come within 1 s")
        alone = self.start(1, 2, self.arguments("alone", "--train.timeout=1"), free_port())
        self.expect(alone, 1, "rank 1 cannot reach rank 0 at 127.0.0.1, port \\d+, for 1 s: Connection refused")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            busy = self.start(0, 2, self.arguments("busy"), taken.getsockname()[1])
            self.expect(busy, 1, "Address already in use; another program has it; choose another MASTER_PORT")
            stranger = self.start(1, 2, self.arguments("busy", "--train.timeout=1"), taken.getsockname()[1])
            self.expect(stranger, 1, "rank 0 at 127.0.0.1 has not been heard of for 1 s")
        elsewhere = self.start(0, 2, self.arguments("elsewhere"), 29500, "192.0.2.1")
        self.expect(elsewhere, 1, "MASTER_ADDR 192.0.2.1.*not an address of this machine")
        nowhere = self.start(1, 2, self.arguments("nowhere"), 29500, "no.such.invalid")
        self.expect(nowhere, 2, "MASTER_ADDR no.such.invalid: .*the host name or address of the machine of rank 0")
        for environment, words in (({"RANK": "1"}, "RANK but not WORLD_SIZE"), ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK is '2'"),
                                   ({"RANK": "0", "WORLD_SIZE": "2"}, "not MASTER_ADDR"),
                                   ({"RANK": "0", "WORLD_SIZE": "x"}, "WORLD_SIZE is 'x'"),
                                   ({"SLURM_STEP_NUM_TASKS": "2"}, "not SLURM_PROCID")):
            self.refused(2, [words], *self.arguments("environment"), env={**os.environ, **environment})


class Machines(Started):
    """Two hosts that share nothing but a cable."""
    NAMES = ("cautious-a", "cautious-b")
    ADDRESSES = ("10.213.7.1", "10.213.7.2")

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("network namespaces need root")
        self.ip("netns", "add", self.NAMES[0])
        self.addCleanup(self.ip, "netns", "del", self.NAMES[0])
        self.ip("netns", "add", self.NAMES[1])
        self.addCleanup(self.ip, "netns", "del", self.NAMES[1])
        self.ip("link", "add", "cable-a", "netns", self.NAMES[0], "type", "veth", "peer", "name", "cable-b", "netns",
                self.NAMES[1])
        for name, address, end in zip(self.NAMES, self.ADDRESSES, ("cable-a", "cable-b")):
            self.ip("-n", name, "address", "add", f"{address}/24", "dev", end)
            self.ip("-n", name, "link", "set", end, "up")
            self.ip("-n", name, "link", "set", "lo", "up")

    def ip(self, *arguments):
        subprocess.run(["ip", *arguments], check=True, capture_output=True)

    def start_on_both(self, command):
        return [self.start(rank, 2, command, 29500, self.ADDRESSES[0], ["ip", "netns", "exec", name])
                for rank, name in enumerate(self.NAMES)]

    def test_two_machines_train_as_one(self):
        one = self.train("one", "--train.grad_accum=2", steps=8)
        for process in self.start_on_both(self.arguments("two", "--quiet", steps=8)):
            _, said = process.communicate(timeout=120)
            self.assertEqual((process.returncode, said), (0, ""))
        for file in ("model.safetensors", "optimizer.safetensors"):
            paths = [next((self.folder / out / "checkpoints").iterdir()) / file for out in ("one", "two")]
            self.assertEqual(*(path.read_bytes() for path in paths))

    def test_a_cable_that_is_cut_ends_both(self):
        processes = self.start_on_both(self.long_run("cut", 2))
        self.wait_for_checkpoint("cut")
        self.ip("-n", self.NAMES[1], "link", "set", "cable-b", "down")
        self.expect(processes[0], 1, "in step \\d+, rank 1 on \\S+ has not been heard of for 2 s")
        self.expect(processes[1], 1, "in step \\d+, rank 0 at 10.213.7.1 has not been heard of for 2 s")

    def test_nothing_listens_beyond_the_address_that_was_given(self):
        processes = self.start_on_both(self.long_run("listening", 60))
        self.wait_for_checkpoint("listening")
        for name, address in zip(self.NAMES, self.ADDRESSES):
            listed = subprocess.run(["ip", "netns", "exec", name, "ss", "-Hltun"], check=True, capture_output=True, text=True).stdout
            addresses = {re.sub(r":\d+$", "", line.split()[4]) for line in listed.splitlines()}
            self.assertLessEqual(addresses, {address}, listed)
        processes[0].send_signal(signal.SIGTERM)
        for process, code in zip(processes, (143, 1)):
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, code)


if __name__ == "__main__":
    unittest.main(verbosity=2)
