"""log.command: what a program of the user's receives, and that none of them can harm a run."""
import json
import pathlib
import sys
import textwrap
import unittest

from train_fixture import Training, run

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "logging"


class LogCommand(Training):
    def lines(self, out, name="rows.jsonl"):
        return [json.loads(line) for line in (out.parent / name).read_text().splitlines()]

    def test_receives_start_rows_and_end_and_again_after_resume(self):
        out = self.train("run", f"--log.command=cat >> {self.folder}/rows.jsonl", "--log.every=5", "--checkpoint.every=10")
        start, *rows, end = self.lines(out)
        self.assertEqual(list(start["start"]), ["run", "step", "steps", "config"])
        self.assertEqual((start["start"]["run"], start["start"]["step"], start["start"]["steps"]), (str(out), 0, 40))
        self.assertEqual(start["start"]["config"]["optimizer"]["name"], "adamw")
        self.assertEqual(start["start"]["config"]["train"]["steps"], 40)
        self.assertEqual(rows, self.rows(out))
        self.assertEqual(end["end"], self.summary(out))

        for old in sorted((out / "checkpoints").iterdir())[1:]:
            for file in old.iterdir():
                file.unlink()
            old.rmdir()
        done = run("train", "--out", out, "--resume", f"--log.command=cat > {self.folder}/more.jsonl")
        self.assertEqual(done.returncode, 0, done.stderr)
        start, *rows, _ = self.lines(out, "more.jsonl")
        self.assertEqual(start["start"]["step"], 30)
        self.assertEqual([row["step"] for row in rows], [35, 40])

    def test_a_program_that_fails_or_never_reads_or_never_ends_is_named_and_the_run_is_the_same(self):
        plain = self.train("plain")
        for name, command, said in (
                ("fails", "echo no network >&2; exit 3", "log.command ended with code 3: no network"),
                ("killed", "kill -9 $$", "log.command was ended by signal 9"),
                ("missing", "no-such-program", "log.command ended with code 127"),
                ("enough", "head -n 1 > /dev/null", None)):
            with self.subTest(command=command):
                out = self.folder / name
                done = run("train", "--config", plain / "config.toml", f"--log.command={command}", "--out", out)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.weights(plain), self.weights(out))
                if said:
                    self.assertIn(said, done.stderr)
                    self.assertIn(said, (out / "log.txt").read_text())
                else:
                    self.assertNotIn("log.command", done.stderr)

    def test_examples_call_what_the_services_offer(self):
        # Stand-ins that write down their calls; the services themselves were never called.
        (self.folder / "wandb.py").write_text(textwrap.dedent("""\
            import json
            class Page:
                def __init__(self): self.summary = {}
                def log(self, row, step): print(json.dumps(["log", step, sorted(row)]), flush=True)
                def finish(self): print(json.dumps(["finish", self.summary["status"]]), flush=True)
            def init(project, name, config, id, resume):
                print(json.dumps(["init", project, name, config["optimizer"]["name"], len(id), resume]), flush=True)
                return Page()
            """))
        (self.folder / "mlflow.py").write_text(textwrap.dedent("""\
            import json
            def say(*what): print(json.dumps(what), flush=True)
            def set_experiment(name): say("experiment", name)
            def start_run(run_name): say("start", run_name)
            def log_params(params): say("params", params["optimizer.name"])
            def log_metrics(metrics, step): say("metrics", step, metrics["loss"])
            def log_dict(what, name): say("dict", what["status"], name)
            def end_run(status): say("end", status)
            """))
        said = {}
        for name in ("wandb", "mlflow"):
            out = self.train(name, f"--log.command=PYTHONPATH={self.folder} {sys.executable} {EXAMPLES}/{name}_log.py mine",
                             "--log.every=20")
            said[name] = [json.loads(line) for line in (out / "log_command.txt").read_text().splitlines()]
            rows = self.rows(out)
        self.assertEqual(said["wandb"][0], ["init", "mine", "wandb", "adamw", 16, "allow"])
        self.assertEqual([call[:2] for call in said["wandb"][1:-1]], [["log", 20], ["log", 40]])
        self.assertEqual(said["wandb"][-1], ["finish", "done"])
        self.assertEqual(said["mlflow"], [["experiment", "mine"], ["start", "mlflow"], ["params", "adamw"],
                                          ["metrics", 20, rows[0]["loss"]], ["metrics", 40, rows[1]["loss"]],
                                          ["dict", "done", "summary.json"], ["end", "FINISHED"]])


if __name__ == "__main__":
    unittest.main()
