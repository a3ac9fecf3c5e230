"""Fine-tuning from end to end: adapters under every decay, PEFT's layout, resume, merging, conversations; what does not fit."""
import json
import unittest

import numpy as np

from models_numpy import read_safetensors
from train_fixture import Training, run

DECAYS = ("none", "decoupled", "cautious", "opposed", "gradient", "random", "shuffled", "layerwise", "selective", "anchored")


class Finetuning(Training):
    def setUp(self):
        super().setUp()
        self.base = self.train("base", "--model.context=256", steps=20)
        self.lessons = self.folder / "alpaca.json"
        entries = [{"instruction": f"Say {n}.", "input": "", "output": f"It is {n}, and {n} again."} for n in range(60)]
        self.lessons.write_text(json.dumps(entries))

    def command(self, out, *more, data=None):
        return ["finetune", self.base, "--data", data or self.lessons, "--train.steps=6", "--train.seq_len=256",
                "--train.batch_size=2", "--train.threads=1", "--lora.rank=2", "--eval.every=0", "--log.every=1",
                "--out", self.folder / out, "--quiet", *more]

    def finetune(self, out, *more, **which):
        done = run(*self.command(out, *more, **which))
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.folder / out

    def loss(self, model):
        done = run("eval", model, "--data", self.corpus, "--tokens", 4096, "--threads", 1, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["loss"]

    def test_every_decay(self):
        still = self.summary(self.finetune("still", "--optimizer.lr=1e-9"))["val_loss"]
        ends = {}
        for decay in DECAYS:
            out = self.finetune(decay, f"--optimizer.decay={decay}", "--optimizer.weight_decay=0.5", "--optimizer.lr=2e-2",
                                "--train.steps=60")
            ends[decay] = self.summary(out)["val_loss"]
            self.assertLess(ends[decay], still - 0.005, decay)
        self.assertGreater(len(set(ends.values())), 7, ends)

    def test_adapters_are_those_of_peft_and_merge(self):
        out = self.finetune("run", "--lora.targets=q_proj,down_proj", "--lora.alpha=6", "--optimizer.lr=3e-2")
        saved = self.newest(out)
        described = json.loads((saved / "adapter_config.json").read_text())
        self.assertEqual((described["peft_type"], described["r"], described["lora_alpha"]), ("LORA", 2, 6))
        self.assertEqual(described["target_modules"], ["q_proj", "down_proj"])
        adapters = read_safetensors(saved / "adapter_model.safetensors")
        before = "base_model.model.model.layers.0."
        self.assertEqual({name: value.shape for name, value in adapters.items()},
                         {before + "self_attn.q_proj.lora_A.weight": (2, 16), before + "self_attn.q_proj.lora_B.weight": (16, 2),
                          before + "mlp.down_proj.lora_A.weight": (2, 24), before + "mlp.down_proj.lora_B.weight": (16, 2)})
        merged = self.folder / "merged"
        done = run("export", out, "--merge", "--format", "hf", "--out", merged, "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        base, whole = (read_safetensors(folder / "model.safetensors") for folder in (self.newest(self.base), merged))
        for name, weight in base.items():
            module = "base_model.model." + name.removesuffix(".weight")
            change = 0
            if module + ".lora_A.weight" in adapters:
                change = 3 * adapters[module + ".lora_B.weight"].astype(np.float64) @ adapters[module + ".lora_A.weight"]
                self.assertGreater(np.abs(change).max(), 1e-4)
            np.testing.assert_allclose(whole[name], weight + change, atol=1e-6)
        self.assertAlmostEqual(self.loss(merged), self.loss(out), places=5)
        self.assertNotAlmostEqual(self.loss(self.base), self.loss(out), places=3)

    def test_resume_is_bit_identical(self):
        more = ["--lora.dropout=0.2", "--optimizer.decay=cautious", "--checkpoint.every=3", "--checkpoint.keep=9"]
        whole = self.finetune("whole", *more)
        cut = self.finetune("cut", *more)
        for path in sorted((cut / "checkpoints").iterdir())[1:]:
            for file in path.iterdir():
                file.unlink()
            path.rmdir()
        done = run("finetune", "--out", cut, "--resume", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("adapter_model.safetensors", "optimizer.safetensors"):
            self.assertEqual((self.newest(cut) / name).read_bytes(), (self.newest(whole) / name).read_bytes(), name)

    def test_all_weights_and_a_conversation(self):
        chats = self.folder / "chats.jsonl"
        turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"},
                 {"role": "user", "content": "Bye"}, {"role": "assistant", "content": "See you"}]
        chats.write_text("\n".join(json.dumps({"messages": turns}) for _ in range(20)))
        out = self.finetune("full", "--lora.rank=0", "--train.steps=30", "--optimizer.lr=1e-2", data=chats)
        self.assertTrue((self.newest(out) / "model.safetensors").exists())
        answer = run("sample", out, "--chat", "--prompt", "Hi", "--tokens", 5, "--temperature", 0)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        talk = run("sample", out, "--chat", "--tokens", 5, "--temperature", 0, input="Hi\nBye\n")
        self.assertEqual(talk.returncode, 0, talk.stderr)
        self.assertTrue(talk.stdout.startswith(answer.stdout))

    def test_what_does_not_fit_is_refused(self):
        broken = self.folder / "broken.jsonl"
        broken.write_text('{"instruction": "a", "output": "b"}\n{"instruction": "a"}\n')
        self.refused(3, ["broken.jsonl: line 2", "no field 'output'"], *self.command("a", data=broken))
        self.refused(2, ["lora.targets", "w_proj", "q_proj"], *self.command("b", "--lora.targets=w_proj"))
        self.refused(3, ["within 2 tokens", "train.seq_len"], *self.command("c", "--train.seq_len=2"))
        self.refused(2, ["MODEL is missing", "finetune --help"], "finetune", "--data", self.lessons, "--out", self.folder / "x")
        self.refused(2, ["--data is missing"], "finetune", self.base, "--out", self.folder / "x")
        self.refused(2, [f"MODEL is missing, or --data has taken '{self.base}' too; write MODEL first, as in: cautious finetune "
                         f"{self.base} --data {self.lessons}"], "finetune", "--data", self.lessons, self.base, "--out", self.folder / "x")
        one = self.folder / "one.txt"
        one.write_text("One short text.")
        self.refused(3, ["1 conversation, taken for validation: nothing is left to train on"], *self.command("d", data=one))
        out = self.finetune("run")
        self.refused(2, ["is an adapter", "--merge"], "export", out, "--format", "hf", "--out", self.folder / "x")
        self.refused(2, ["is not an adapter"], "export", self.base, "--merge", "--format", "hf", "--out", self.folder / "x")
        other = self.train("other", "--model.width=8", "--model.head_size=4", steps=2)
        described = self.newest(out) / "adapter_config.json"
        fields = json.loads(described.read_text())
        for change, words in (({"base_model_name_or_path": str(self.newest(other))}, ["lora_A.weight", "another architecture"]),
                              ({"base_model_name_or_path": "nowhere"}, ["nowhere", "base_model_name_or_path"]),
                              ({"use_dora": True}, ["adapter_config.json", "use_dora"]),
                              ({"surprise": 1}, ["adapter_config.json", "surprise"])):
            described.write_text(json.dumps(fields | change))
            self.refused(3, words, "eval", out, "--data", self.corpus)

    def test_a_study_judged_by_a_benchmark(self):
        """As the paper's table of fine-tuned models."""
        items = [{"goal": f"Say {n}.", "sol1": f"It is {n}.", "sol2": "No.", "label": n % 2} for n in range(8)]
        (self.folder / "piqa.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
        plan = self.folder / "plan.toml"
        plan.write_text(f"""title = "t"
objective = "eval/piqa/acc"
seeds = 2
[base]
task = "instruct"
model.from = "{self.base}"
data.path = "{self.lessons}"
train.steps = 2
train.seq_len = 256
train.batch_size = 2
lora.rank = 2
eval.every = 0
eval.tasks = ["piqa"]
eval.data = "{self.folder}"
[[arm]]
name = "lora"
optimizer.decay = "none"
[[arm]]
name = "spd"
optimizer.decay = "selective"
[[contrast]]
a = "spd"
b = "lora"
""")
        study = self.folder / "study"
        done = run("study", plan, "--out", study, "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        runs = [json.loads(path.read_text()) for path in study.glob("runs/*/summary.json")]
        self.assertEqual(len(runs), 4)
        self.assertIn("error on piqa", (study / "report.html").read_text())
        table = (study / "tables" / "benchmarks.csv").read_text().splitlines()
        self.assertEqual(len(table), 3)
        plan.write_text(plan.read_text().replace(f'eval.data = "{self.folder}"', 'eval.data = "nowhere"'))
        self.refused(2, ["eval.data: no file, folder or known set named 'nowhere'"], "study", plan, "--out", self.folder / "other")


if __name__ == "__main__":
    unittest.main()
