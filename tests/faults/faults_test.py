"""Every system call may fail, come short, be interrupted or be the last: one line, nothing lost, the same command goes on.

usage: faults_test.py PROGRAM SHIM ARCHIVE [--all] [TEST...]

A sample of the calls is tried; with --all each of them (by hand; minutes per command). ARCHIVE is the package of moby-dick, for
`data get`.
"""
import errno
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

import power
import scenarios

PROGRAM, SHIM = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
ARCHIVE = sys.argv.pop(1)
ALL = "--all" in sys.argv
if ALL:
    sys.argv.remove("--all")
MEMORY = "/dev/shm"
KINDS = {"write": ["ENOSPC", "EIO", "EINTR", "short", "kill", "kill-half"], "sync": ["EIO", "EINTR", "kill"],
         "rename": ["EIO", "kill"], "exchange": ["EIO", "kill"], "mkdir": ["ENOSPC", "kill"], "open": ["EIO", "EMFILE", "EINTR", "kill"],
         "create": ["ENOSPC", "EINTR", "kill"], "creat": ["ENOSPC", "kill"], "mmap": ["ENOMEM", "kill"],
         "close": ["EIO", "EINTR", "kill"], "remove": ["EIO", "kill"], "size": ["EIO", "EINTR", "kill"], "syncfs": ["EIO", "kill"]}
HARMLESS = ("EINTR", "short")


class Faults(unittest.TestCase):
    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None)
        cls.addClassCleanup(holder.cleanup)
        cls.top = pathlib.Path(holder.name)
        cls.inputs = cls.top / "inputs"
        cls.inputs.mkdir()
        cls.number = 0

    def fresh(self, scenario):
        Faults.number += 1
        folder = self.top / f"trial-{Faults.number}"
        scenario.prepare(folder)
        return folder

    def start(self, scenario, arguments, folder=None, **settings):
        more = {} if folder is None else {"LD_PRELOAD": str(SHIM), "FAULT_ROOT": str(folder),
                                          **{f"FAULT_{name.upper()}": str(value) for name, value in settings.items()}}
        return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                              env={**os.environ, "OMP_NUM_THREADS": "1", **more})

    def clean(self, scenario, store=None):
        """The calls of an undisturbed run, and what it makes."""
        folder, log = self.fresh(scenario), self.top / "log"
        log.unlink(missing_ok=True)
        settings = {"log": log} if store is None else {"log": log, "store": store}
        done = self.start(scenario, scenario.command(folder), folder, **settings)
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = power.read_log(log)
        if store is not None:
            return folder, calls, scenario.result(folder)
        result = scenario.result(folder)
        shutil.rmtree(folder)
        return folder, calls, result

    def goes_on(self, scenario, folder, expected):
        if not folder.exists():
            folder.mkdir()
        command = scenario.again(folder)
        if command is not None:
            done = self.start(scenario, command)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(scenario.result(folder), expected)
        self.assertEqual(scenarios.strays(folder), [])

    def trial(self, scenario, k, kind, expected):
        folder = self.fresh(scenario)
        code = f"fail:{getattr(errno, kind)}" if hasattr(errno, kind) else kind
        done = self.start(scenario, scenario.command(folder), folder, program="cautious", at=k, kind=code)
        if kind.startswith("kill"):
            self.assertIn(done.returncode, (-9, 0))
        elif kind in HARMLESS and scenario.survives_interruption:
            self.assertEqual(done.returncode, 0, done.stderr)
        else:
            self.assertIn(done.returncode, (0, 1), done.stderr)
        if done.returncode == 1:
            self.assertRegex(done.stderr.splitlines()[-1], r"\Acautious: ")
        if done.returncode == 0:
            self.assertEqual(scenario.result(folder), expected)
        else:
            self.goes_on(scenario, folder, expected)
        shutil.rmtree(folder)

    def every_call(self, scenario, most):
        _, calls, expected = self.clean(scenario)
        own = [call for program, _, call, _, _ in calls if program == "cautious"]
        self.assertGreater(len(own), 5)
        trials = [(k, call, kind) for k, call in enumerate(own, 1) for kind in KINDS.get(call, [])]
        if not ALL:  # at least one of every pair, then by lot
            lot = random.Random(1)
            lot.shuffle(trials)
            firsts = list({(call, kind): (k, call, kind) for k, call, kind in trials}.values())
            trials = (firsts + [trial for trial in trials if trial not in firsts])[:most]
        for k, call, kind in sorted(trials):
            with self.subTest(scenario=type(scenario).__name__, k=k, call=call, kind=kind):
                self.trial(scenario, k, kind, expected)
        print(f"{type(scenario).__name__}: {len(trials)} faults at {len(own)} calls", flush=True)

    def power_loss(self, scenario, most):
        store = self.top / "store"
        shutil.rmtree(store, ignore_errors=True)
        store.mkdir()
        source, calls, expected = self.clean(scenario, store)
        saved = scenario.saved(calls) if hasattr(scenario, "saved") else []
        moments = [(n, kept) for n in range(1, len(calls) + 1) for kept in ("synced", "names", "zeros")]
        if not ALL:
            lot = random.Random(2)
            moments = lot.sample(moments, min(most, len(moments))) + [(n, kept) for n, _ in saved for kept in ("synced", "zeros")]
        seen = set()
        for n, kept in sorted(moments):
            with self.subTest(scenario=type(scenario).__name__, after=n, kept=kept):
                disk = power.Disk(source, store)
                for _, number, call, path, more in calls[:n]:
                    disk.apply(number, call, path, more)
                shutil.rmtree(source, ignore_errors=True)
                disk.rebuild(source, kept)
                steps = [step for at, step in saved if at <= n]
                if steps:
                    found = [int(path.name[5:]) for path in (source / "run/checkpoints").glob("step_*")]
                    self.assertIn(steps[-1], found)
                left = power.content(source)
                if left not in seen:  # many calls change nothing that would be left
                    self.goes_on(scenario, source, expected)
                seen.add(left)
        shutil.rmtree(source)
        print(f"{type(scenario).__name__}: {len(moments)} power losses at {len(calls)} calls, {len(seen)} different disks", flush=True)

    def test_train(self):
        scenario = scenarios.Train(PROGRAM, self.inputs)
        self.every_call(scenario, 24)
        self.power_loss(scenario, 8)

    def test_resume(self):
        scenario = scenarios.Resume(PROGRAM, self.inputs)
        self.every_call(scenario, 14)

    def test_tokenize(self):
        scenario = scenarios.Tokenize(PROGRAM, self.inputs)
        self.every_call(scenario, 60)
        self.power_loss(scenario, 20)

    def test_replay(self):
        scenario = scenarios.Replay(PROGRAM, self.inputs)
        self.every_call(scenario, 60)
        self.power_loss(scenario, 20)

    def test_export(self):
        scenario = scenarios.Export(PROGRAM, self.inputs)
        self.every_call(scenario, 60)
        self.power_loss(scenario, 20)

    def test_report(self):
        self.every_call(scenarios.Report(PROGRAM, self.inputs), 40)

    def test_study(self):
        scenario = scenarios.Study(PROGRAM, self.inputs)
        self.every_call(scenario, 16)
        self.power_loss(scenario, 4)

    def test_data_get(self):
        shutil.copy(ARCHIVE, self.inputs / scenarios.Fetch.archive)
        scenario = scenarios.Fetch(PROGRAM, self.inputs)
        self.every_call(scenario, 20)
        self.power_loss(scenario, 4)


if __name__ == "__main__":
    unittest.main()
