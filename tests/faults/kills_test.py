"""kill -9 at random instants, many of them inside checkpoints; continued, every run ends with the bytes of one that was never killed.

usage: kills_test.py PROGRAM KILLS

12 kills are a test; more, by hand, say more.
"""
import itertools
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

import scenarios

PROGRAM, KILLS = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2])
MEMORY = "/dev/shm"
RECIPES = [["--optimizer.name=adamw", "--optimizer.decay=cautious"],
           ["--optimizer.name=muon", "--optimizer.decay=cautious", "--train.grad_accum=2"],
           ["--optimizer.name=lion", "--optimizer.decay=random", "--train.grad_accum=4"],
           ["--optimizer.name=adamw", "--optimizer.decay=random"],
           ["--optimizer.name=muon", "--optimizer.decay=random"],
           ["--optimizer.name=lion", "--optimizer.decay=cautious"]]
MORE = ["--train.steps=30", "--checkpoint.every=1", "--log.every=1", "--eval.every=10"]


class Killing(scenarios.Train):
    def __init__(self, inputs, recipe):
        super().__init__(PROGRAM, inputs)
        self.recipe = recipe

    def command(self, folder):
        return [*super().command(folder), *MORE, *self.recipe]

    def start(self, folder, arguments):
        return subprocess.Popen([PROGRAM, *map(str, arguments)], stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})

    def wait_for_begin(self, process, folder):
        while process.poll() is None and not (folder / "run/config.toml").exists():
            time.sleep(0.002)
        return time.monotonic()

    def whole(self, folder):
        """Seconds from the first file to the end, and what is made."""
        process = self.start(folder, self.command(folder))
        begin = self.wait_for_begin(process, folder)
        assert process.wait() == 0, process.stderr.read()
        process.stderr.close()
        return time.monotonic() - begin, self.result(folder)

    def killed(self, folder, seconds):
        """Whether it came before the end, and inside a checkpoint."""
        process = self.start(folder, self.command(folder))
        self.wait_for_begin(process, folder)
        time.sleep(seconds)
        process.kill()
        process.communicate()
        return process.returncode == -9, any((folder / "run/checkpoints").glob(".step_*"))

    def goes_on(self, folder):
        process = self.start(folder, self.again(folder))
        said = process.communicate()[1]
        return f"code {process.returncode}: {said}" if process.returncode != 0 else ""


def main():
    top = pathlib.Path(tempfile.mkdtemp(dir=MEMORY if os.access(MEMORY, os.W_OK) else None))
    chance = random.Random(7)
    kills, inside, wrong = 0, 0, []
    try:
        runs = [Killing(top, recipe) for recipe in RECIPES]
        wholes = {}
        for one in itertools.cycle(runs):
            if kills == KILLS:
                break
            if id(one) not in wholes:
                wholes[id(one)] = one.whole(top / f"whole-{len(wholes)}")
            seconds, expected = wholes[id(one)]
            folder = top / "killed"
            in_time, in_checkpoint = one.killed(folder, chance.uniform(0, seconds))
            if in_time:
                kills += 1
                inside += in_checkpoint
                problem = one.goes_on(folder)
                if problem or one.result(folder) != expected or scenarios.strays(folder):
                    wrong.append(f"kill {kills}, {' '.join(one.recipe)}: {problem or 'other bytes'}")
            shutil.rmtree(folder)
    finally:
        shutil.rmtree(top)
    print(f"{kills - len(wrong)} of {kills} byte-identical; {inside} were killed inside a checkpoint")
    sys.exit("\n".join(wrong) or None)


main()
