"""Several ranks train as one process does: the same weights, state and metrics, whatever the number of ranks, also when a run
continues with another number."""
import json
import re
import shutil
import struct
import unittest
import zlib

from train_fixture import Training, run

# Tensors of more than one chunk, so that ranks have slices of them.
LARGER = ["--model.width=64", "--model.head_size=32", "--model.hidden=300", "--train.batch_size=12", "--eval.every=3",
          "--log.every=1", "--log.tensors=true", "--checkpoint.every=2", "--checkpoint.keep=9"]
CLOCKS = {"tokens_per_s", "seconds", "time"}


class Launch(Training):
    def launch(self, ranks, out, *more, steps=6):
        done = run("launch", "-n", ranks, *self.arguments(out, "--quiet", *LARGER, *more, steps=steps))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return self.folder / out

    def numbers(self, out):
        return [{name: value for name, value in row.items() if name not in CLOCKS} for row in self.rows(out)]

    def expect_same(self, one, other):
        self.assertEqual(self.numbers(one), self.numbers(other))
        folders = sorted((one / "checkpoints").iterdir())
        self.assertEqual([folder.name for folder in folders], sorted(path.name for path in (other / "checkpoints").iterdir()))
        for folder in folders:
            for file in folder.iterdir():
                if file.name != "state.json":  # which has the seconds
                    self.assertEqual(file.read_bytes(), (other / "checkpoints" / folder.name / file.name).read_bytes(), file)

    def expect_same_losses(self, one, other):
        self.assertEqual([row.keys() for row in one], [row.keys() for row in other])
        for a, b in zip(one, other):
            for column in ("loss", "val_loss", "grad_norm"):
                if a.get(column) is not None:
                    self.assertAlmostEqual(a[column], b[column], delta=1e-5 * abs(a[column]))

    # n ranks add up as one process adds up n chunks: in their order.
    def test_ranks_have_the_bits_of_as_many_chunks(self):
        for name, options in {
            "adamw": ["--optimizer.decay=cautious", "--log.decay_trace=true"],
            "muon": ["--optimizer.name=muon", "--optimizer.decay=cautious"],
            "lion": ["--optimizer.name=lion", "--optimizer.decay=random", "--train.ema=0.9", "--model.recompute=true"],
            "shuffled": ["--optimizer.decay=shuffled", "--optimizer.update_rms_clip=1"],
        }.items():
            for ranks in (2, 3) if name == "adamw" else (2,):
                with self.subTest(name, ranks=ranks):
                    one = self.train(f"{name}-{ranks}-chunks", *LARGER, f"--train.grad_accum={ranks}", *options, steps=6)
                    many = self.launch(ranks, f"{name}-{ranks}", *options)
                    self.expect_same(one, many)
                    if name == "adamw":
                        self.assertEqual(self.decay_trace(one), self.decay_trace(many))

    # Otherwise sums are in another order.
    def test_any_number_of_ranks_has_the_same_losses(self):
        one = self.numbers(self.train("one", *LARGER, steps=6))
        for ranks, chunks in ((2, 1), (2, 3), (4, 1)):
            many = self.numbers(self.launch(ranks, f"many-{ranks}-{chunks}", f"--train.grad_accum={chunks}"))
            self.expect_same_losses(one, many)

    def test_a_run_continues_with_any_number_of_ranks(self):
        through = self.launch(2, "through")
        for ranks in (2, 1, 3):
            resumed = self.launch(2, f"resumed-{ranks}")
            for folder in (resumed / "checkpoints").iterdir():
                if folder.name > "step_00000002":
                    shutil.rmtree(folder)
            words = ["launch", "-n", ranks] if ranks > 1 else []
            done = run(*words, "train", "--out", resumed, "--resume", "--quiet")
            self.assertEqual(done.returncode, 0, done.stderr)
            if ranks == 2:
                self.expect_same(through, resumed)
            self.expect_same_losses(self.numbers(through), self.numbers(resumed))

    def test_what_cannot_be_is_refused_in_one_line(self):
        done = run("launch", "-n", 3, *self.arguments("odd", "--train.batch_size=4"))
        self.assertEqual(done.returncode, 2)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("train.batch_size 4 cannot be divided among 3 ranks", done.stderr)
        self.assertFalse((self.folder / "odd").exists())
        self.refused(2, ["launch starts 'train' or 'finetune', not 'eval'"], "launch", "-n", 2, "eval", "x")
        self.refused(2, ["--ranks is 0", "at least 1"], "launch", "-n", 0, "train")
        self.refused(2, ["-n comes before 'train', as in: cautious launch -n 2 train ..."], "launch", "train", "-n", 2)
        self.refused(2, ["--port comes before 'finetune'"], "launch", "finetune", "--port=29500")


class OnPaper(Training):
    # By hand: 4 ranks send 3/4 of the gradients and of the weights, 4 bytes each; FLOP over ranks, peak and utilization.
    def test_a_dry_run_follows_its_model(self):
        def lines(hardware, *more):
            done = run("train", "--preset", "nano-1m", "--dry-run", "--world", 4, "--hardware", hardware, *more)
            self.assertEqual(done.returncode, 0, done.stderr)
            return {line[:12].strip(): line[13:] for line in done.stdout.splitlines()}

        found = lines("a100-80g peak=1e12 utilization=0.5 link=1e9")
        parameters = int(found["parameters"].split()[0])
        flops = float(re.search(r"([\d.e+]+) FLOP per step", found["step"]).group(1))
        milliseconds = [float(text) for text in re.findall(r"([\d.e+-]+) ms", found["sent"])]
        for value in milliseconds[:2]:
            self.assertAlmostEqual(value, 1e3 * 0.75 * 4 * parameters / 1e9, delta=0.01 * value)
        self.assertEqual(milliseconds[2], milliseconds[1])  # the gradients are hidden
        computing = float(re.search(r"([\d.e+-]+) ms computing", found["a step"]).group(1))
        self.assertAlmostEqual(computing, 1e3 * flops / (4 * 0.5e12), delta=0.01 * computing)
        self.assertIn("does not fit", lines("a100-80g memory=1e6")["per rank"])
        self.refused(2, ["--hardware is missing", "a100-80g"], "train", "--dry-run", "--world", 4)
        for ranks in (0, -1):
            self.refused(2, [f"--world is {ranks}; it must be at least 1"], "train", "--dry-run", "--world", ranks)
        self.refused(2, ["no hardware named 'a10'", "a100-40g"], "train", "--dry-run", "--hardware", "a10")
        self.refused(2, ["--world and --hardware are for --dry-run"], *self.arguments("x", "--world", "2"))

    def test_the_benchmark_measures_what_it_says(self):
        done = run("bench", "scale", "--preset", "nano-100k", "--rounds", 1, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        row = json.loads(done.stdout)
        self.assertEqual(row["ranks"], 2)
        self.assertLess(row["bound_bytes_per_step"], row["sent_bytes_per_step"] * 1.05)
        self.assertLess(row["optimizer_fraction"], 0.6)
        self.refused(2, ["--batch is 4", "3 ranks"], "bench", "scale", "--ranks", 3)


class Images(Training):
    # Batch norms: where all chunks lead in turn is computed from where each rank's own led, so the last bits may differ.
    def test_running_statistics_are_those_of_one_process(self):
        images = self.folder / "images"
        for label in ("a", "b"):
            (images / label).mkdir(parents=True)
            for number in range(16):
                shade = 40 + 8 * number + (60 if label == "b" else 0)
                pixels = bytes((shade + 5 * i + number * j) % 256 for i in range(16) for j in range(16))
                (images / label / f"{number}.png").write_bytes(png(16, 16, pixels))
        settings = ["--preset", "resnet-20", f"--data.path={images}", "--data.val_fraction=0.25", "--model.image_size=16", "--train.steps=4",
                    "--train.batch_size=8", "--train.threads=1", "--eval.every=2", "--log.every=1", "--quiet"]
        runs = []
        for words, out in (([], "one"), (["launch", "-n", 2], "two")):
            more = [] if words else ["--train.grad_accum=2"]
            done = run(*words, "train", *settings, *more, "--out", self.folder / out)
            self.assertEqual(done.returncode, 0, done.stderr)
            runs.append(self.rows(self.folder / out))
        for a, b in zip(*runs):
            self.assertEqual(a["loss"], b["loss"])
            if a.get("val_loss") is not None:
                self.assertAlmostEqual(a["val_loss"], b["val_loss"], delta=1e-6 * a["val_loss"])


def png(width, height, gray):
    def block(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = b"".join(b"\0" + gray[y * width:(y + 1) * width] for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + block(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
            + block(b"IDAT", zlib.compress(lines)) + block(b"IEND", b""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
