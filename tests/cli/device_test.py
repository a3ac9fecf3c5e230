"""Training on a device that is not the CPU, and in other numbers. libtorch's lazy device stands for those that are not here: its
tensors are no plain memory, so everything goes through the operations, the optimizer and the copies that a GPU would need."""
import shutil
import unittest

from train_fixture import Training, run


class Devices(Training):
    SMALL = ["--train.seq_len=16", "--eval.tokens=512", "--eval.every=2", "--log.every=1", "--checkpoint.every=2",
             "--checkpoint.keep=5"]

    def numbers(self, out):
        return [{name: row[name] for name in ("loss", "val_loss", "grad_norm", "ratio", "rms_x", "decay_budget")
                 if row.get(name) is not None} for row in self.rows(out)]

    def expect_close(self, one, other, relative):
        a, b = self.numbers(one), self.numbers(other)
        self.assertEqual([row.keys() for row in a], [row.keys() for row in b])
        for left, right in zip(a, b):
            for name, value in left.items():
                self.assertAlmostEqual(value, right[name], delta=relative * abs(value) + 1e-12, msg=name)

    def test_a_device_trains_as_the_cpu_does(self):
        for name, options, relative in (("adamw", ["--optimizer.decay=cautious", "--model.recompute=true"], 1e-6),
                                        ("lion", ["--optimizer.name=lion", "--optimizer.decay=random", "--train.ema=0.9"], 1e-6),
                                        ("muon", ["--optimizer.name=muon", "--optimizer.decay=cautious"], 1e-3),
                                        ("layerwise", ["--optimizer.decay=layerwise", "--optimizer.update_rms_clip=1"], 1e-6)):
            with self.subTest(name):
                cpu = self.train(f"{name}-cpu", *self.SMALL, *options, steps=4)
                device = self.train(f"{name}-device", *self.SMALL, *options, "--train.device=lazy", steps=4)
                self.expect_close(cpu, device, relative)

    def test_ranks_with_devices_train_as_one(self):
        settings = [*self.SMALL, "--optimizer.decay=cautious", "--train.device=lazy"]
        one = self.train("one", *settings, steps=4)
        done = run("launch", "-n", 2, *self.arguments("two", "--quiet", *settings, steps=4))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.expect_close(one, self.folder / "two", 1e-6)

    def test_a_checkpoint_knows_no_device(self):
        options = [*self.SMALL, "--optimizer.decay=cautious"]
        through = self.train("through", *options, steps=4)
        for name, begin, end in (("to-cpu", "lazy", "cpu"), ("to-device", "cpu", "lazy")):
            out = self.train(name, *options, f"--train.device={begin}", steps=4)
            self.continue_after(2, out, f"--train.device={end}")
            self.expect_close(through, out, 1e-6)

    def continue_after(self, step, out, *more):
        for folder in (out / "checkpoints").iterdir():
            if int(folder.name.split("_")[1]) > step:
                shutil.rmtree(folder)
        done = run("train", "--out", out, "--resume", "--quiet", *more)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_precisions_are_close_to_each_other(self):
        f32 = self.numbers(self.train("f32", *self.SMALL, "--optimizer.decay=cautious", steps=4))
        for precision in ("mixed", "bf16", "bf16-stochastic"):
            out = self.train(precision, *self.SMALL, "--optimizer.decay=cautious", f"--train.precision={precision}", steps=4)
            for a, b in zip(f32, self.numbers(out)):
                for name, value in a.items():
                    self.assertAlmostEqual(value, b[name], delta=0.02 * abs(value), msg=f"{precision} {name}")
            self.assertNotEqual(f32, self.numbers(out))
            checkpoint = next((out / "checkpoints").iterdir())
            self.assertEqual(b"BF16" in (checkpoint / "model.safetensors").read_bytes()[:2000], precision != "mixed")
            self.assertEqual(run("sample", out, "--prompt", "The", "--tokens", 3).returncode, 0)

    def test_bf16_continues_with_the_same_bits(self):
        options = [*self.SMALL, "--train.precision=bf16", "--optimizer.decay=cautious"]
        through, resumed = self.train("through", *options, steps=4), self.train("resumed", *options, steps=4)
        self.continue_after(2, resumed)
        for file in ("model.safetensors", "optimizer.safetensors"):
            self.assertEqual(*((out / "checkpoints" / "step_00000004" / file).read_bytes() for out in (through, resumed)))

    def test_what_is_not_there_is_named(self):
        for value, words in (("gpu", ["train.device", "'gpu'", "valid: auto, cpu, cuda"]), ("cuda", ["finds no GPU of CUDA"]),
                             ("cuda:1", ["finds no GPU of CUDA", "choose cpu"]), ("mps", ["in f64", "Metal"]),
                             ("cuda:x", ["'cuda:x'"])):
            self.refused(2, words, *self.arguments("nowhere", f"--train.device={value}"))
        self.refused(2, ["train.ema", "bf16"], *self.arguments("nowhere", "--train.ema=0.9", "--train.precision=bf16"))
        self.refused(2, ["train.precision", "f32, mixed, bf16, bf16-stochastic"],
                     *self.arguments("nowhere", "--train.precision=f16"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
