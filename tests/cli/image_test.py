"""Image classifiers from end to end, on a small set of our own making: they learn, stop and continue, and are judged right."""
import csv
import gzip
import json
import signal
import struct
import subprocess
import time
import unittest
import zlib

import numpy

from train_fixture import PROGRAM, Training, run

SIDE, CLASSES = 12, 3
VIT = ["--preset", "vit-nano-4", "--model.width=16", "--model.layers=1", "--model.heads=2", "--model.hidden=32",
       "--model.drop_path=0.1"]
RESNET = ["--preset", "resnet-20", "--model.width=4", "--model.blocks=1,1"]


def stripes(count, seed):
    """Class 0: horizontal, 1: vertical, 2: diagonal stripes, with noise."""
    draw = numpy.random.default_rng(seed)
    labels = draw.integers(0, CLASSES, count)
    y, x = numpy.mgrid[:SIDE, :SIDE]
    phase = draw.integers(0, 4, count)[:, None, None]
    wave = numpy.stack([y, x, x + y])[labels] + phase
    pixels = 90 * (wave % 4 < 2) + draw.integers(0, 120, (count, SIDE, SIDE))
    return pixels.astype(numpy.uint8), labels.astype(numpy.uint8)


def write_idx(folder, kind, pixels, labels):
    head = struct.pack(">4I", 0x803, len(pixels), SIDE, SIDE)
    (folder / f"{kind}-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + pixels.tobytes()))
    (folder / f"{kind}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, len(labels)) + labels.tobytes())


def png(pixels):
    """A grey PNG file, written by hand."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    head = struct.pack(">2I5B", pixels.shape[1], pixels.shape[0], 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class Images(Training):
    def setUp(self):
        super().setUp()
        self.data = self.folder / "data"
        self.data.mkdir()
        write_idx(self.data, "train", *stripes(600, 1))
        self.test_pixels, self.test_labels = stripes(200, 2)
        write_idx(self.data, "t10k", self.test_pixels, self.test_labels)

    def arguments(self, out, *more, steps=60):
        return ["train", f"--data.path={self.data}", f"--train.steps={steps}", "--train.batch_size=32", "--train.threads=1",
                "--optimizer.lr=1e-2", "--out", self.folder / out, *more]

    def test_every_optimizer_learns(self):
        cases = [(name, lr, model) for name, lr in (("adamw", 1e-2), ("muon", 2e-2), ("lion", 4e-3)) for model in (VIT, RESNET)]
        for name, lr, model in [*cases, ("sgdm", 0.4, RESNET)]:  # SGD alone hardly moves a transformer
            with self.subTest(optimizer=name, model=model[1]):
                out = self.train(f"{name}-{model[1]}", *model, f"--optimizer.name={name}", f"--optimizer.lr={lr}",
                                 "--optimizer.decay=cautious", steps=120)
                self.assertLess(self.summary(out)["objective"], 33, "of about 67% by chance")

    def test_run_directory(self):
        out = self.train("run", *RESNET, "--eval.every=20", "--augment.crop=pad", "--augment.pad=1", "--augment.flip=0.5")
        self.assertEqual({path.name for path in self.newest(out).iterdir()},
                         {"model.safetensors", "optimizer.safetensors", "state.json", "config.json"})
        summary, rows = self.summary(out), self.rows(out)
        self.assertEqual((summary["status"], summary["images"], summary["val_images"]), ("done", 40 * 32, 200))
        self.assertEqual(summary["objective"], rows[-1]["val_error"])
        for part in ("convolution", "embedding", "vectors"):
            self.assertGreater(rows[-1][f"{part}/rms_x"], 0)
        with open(out / "summary.csv", newline="") as file:
            table = list(csv.DictReader(file))
        self.assertEqual(list(table[0]), ["epoch", "train_loss", "eval_loss", "eval_top1", "eval_top5", "lr"])
        self.assertEqual([float(row["eval_top1"]) for row in table],
                         [100 - row["val_error"] for row in rows if "val_error" in row])
        evaluation = json.loads((out / "evaluation.json").read_text())
        confusion = numpy.array(evaluation["confusion"])
        numpy.testing.assert_array_equal(confusion.sum(1), numpy.bincount(self.test_labels, minlength=10))
        self.assertAlmostEqual(100 - 100 * numpy.trace(confusion) / 200, summary["val_error"])
        self.assertEqual(len(evaluation["mistakes"]), min(40, 200 - numpy.trace(confusion)))

    def test_eval_and_predict_agree_with_the_run(self):
        out = self.train("run", *VIT, "--train.ema=0.9")
        done = run("eval", out, "--data", self.data, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertAlmostEqual(100 - json.loads(done.stdout)["top1"], self.summary(out)["val_error"])
        files = [self.folder / f"{i}.png" for i in range(200)]
        for file, pixels in zip(files, self.test_pixels):
            file.write_bytes(png(pixels))
        done = run("predict", out, *files, "--top", "1", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        guesses = [json.loads(line)["classes"][0]["class"] for line in done.stdout.splitlines()]
        wrong = sum(guess != str(label) for guess, label in zip(guesses, self.test_labels))
        self.assertAlmostEqual(100 * wrong / 200, self.summary(out)["val_error"])

    def test_stopped_and_continued_it_ends_with_the_same_bytes(self):
        for model in (VIT, RESNET):
            more = [*model, "--checkpoint.every=7", "--train.ema=0.95", "--augment.crop=resized", "--augment.mixup=0.4",
                    "--augment.cutmix=1", "--augment.erase=0.3", "--augment.randaugment=2", "--augment.smoothing=0.1"]
            name = model[1]
            whole = self.train(f"{name}-whole", *more, steps=120)
            out = self.folder / f"{name}-killed"
            command = self.arguments(out.name, *more, "--data.workers=3", steps=120)
            process = subprocess.Popen([PROGRAM, *map(str, command)], stderr=subprocess.DEVNULL)
            while process.poll() is None and not (out / "checkpoints" / "step_00000014").exists():
                time.sleep(0.002)
            process.send_signal(signal.SIGKILL)
            process.wait()
            done = run("train", "--out", out, "--resume", "--quiet")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.weights(whole), self.weights(out))
            self.assertEqual(*[(self.newest(run_) / "ema.safetensors").read_bytes() for run_ in (whole, out)])

    def test_refusals(self):
        def refused(code, words, *more):
            self.refused(code, words, *self.arguments("x", *more))
            self.assertFalse((self.folder / "x").exists())

        refused(2, ["patch", "5"], *VIT, "--model.patch=5")
        refused(2, ["10 classes", "--model.classes=10"], *RESNET, "--model.classes=2")
        refused(2, ["1 channels", "--model.channels=1"], *RESNET, "--model.channels=3")
        refused(2, ["no key named 'data.tokenizer'"], *RESNET, "--data.tokenizer=bytes")
        whole = (self.data / "train-images-idx3-ubyte.gz").read_bytes()
        (self.data / "train-images-idx3-ubyte.gz").write_bytes(whole[:1000])
        refused(3, ["train-images-idx3-ubyte.gz"], *RESNET)
        (self.data / "train-images-idx3-ubyte.gz").write_bytes(whole)
        out = self.train("run", *RESNET, steps=2)
        self.refused(3, ["image classifier", "cautious predict"], "sample", out, "--prompt", "x")
        (self.folder / "no.png").write_bytes(b"not an image")
        self.refused(3, ["no.png", "not a PNG or JPEG file"], "predict", out, self.folder / "no.png")
        text = self.folder / "text"
        text.mkdir()
        self.refused(3, ["text"], "eval", out, "--data", text)


if __name__ == "__main__":
    unittest.main()
