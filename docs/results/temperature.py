"""The loss of every finished run of a study at the temperature that suits its model best: how much of a difference between arms is
how sure the models are, and not what they know. A temperature T divides the weights of the model's last norm by T, and so its
logits.

usage: temperature.py PROGRAM STUDY TEXT [TOKENS]    prints CSV: run, loss, accuracy, best T, loss at it
For adamw-1m-lambdas/temperature.csv: a folder whose runs/ has those of plain decay at 5.6 and of CWD at 22, and the last
twentieth of gcide.txt.
"""
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import tomllib

import numpy as np

NORM, STEP = "model.norm.weight", 0.15  # of log T between the three points of a parabola


def scaled(checkpoint, folder, temperature):
    """A copy of the checkpoint's model whose logits are divided by the temperature."""
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(checkpoint / name, folder)
    config = json.loads((checkpoint / "config.json").read_text())
    run = tomllib.loads((checkpoint.parent.parent / "config.toml").read_text())
    config["max_position_embeddings"] = run["train"]["seq_len"] or config["max_position_embeddings"]  # windows as in training
    (folder / "config.json").write_text(json.dumps(config))
    raw = bytearray((checkpoint / "model.safetensors").read_bytes())
    start = 8 + struct.unpack("<Q", raw[:8])[0]
    entry = json.loads(raw[8:start])[NORM]
    assert entry["dtype"] == "F32", entry
    begin, end = (start + offset for offset in entry["data_offsets"])
    raw[begin:end] = (np.frombuffer(raw[begin:end], "<f4") / np.float32(temperature)).astype("<f4").tobytes()
    (folder / "model.safetensors").write_bytes(raw)


def evaluated(program, checkpoint, text, tokens, temperature):
    with tempfile.TemporaryDirectory() as name:
        scaled(checkpoint, pathlib.Path(name), temperature)
        done = subprocess.run([program, "eval", name, "--data", text, "--tokens", tokens, "--threads", "1", "--json"],
                              capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def best(program, checkpoint, text, tokens):
    """Parabolas over log T, moved until the lowest point is in the middle."""
    losses, middle = {}, 0

    def loss(i):
        if i not in losses:
            losses[i] = evaluated(program, checkpoint, text, tokens, np.exp(STEP * i))["loss"]
        return losses[i]

    while not loss(middle) <= min(loss(middle - 1), loss(middle + 1)):
        middle += 1 if loss(middle + 1) < loss(middle - 1) else -1
    low, mid, high = (loss(middle + i) for i in (-1, 0, 1))
    temperature = np.exp(STEP * (middle + (low - high) / (2 * (low - 2 * mid + high))))
    return temperature, evaluated(program, checkpoint, text, tokens, temperature)["loss"]


def main():
    program, study, text = sys.argv[1:4]
    tokens = sys.argv[4] if len(sys.argv) > 4 else "131072"
    print("run,loss,accuracy,T,loss at T")
    for run in sorted(pathlib.Path(study, "runs").iterdir()):
        checkpoints = sorted(run.glob("checkpoints/step_*"))
        if not checkpoints or not (run / "summary.json").exists():
            continue
        plain = evaluated(program, checkpoints[-1], text, tokens, 1)
        temperature, loss = best(program, checkpoints[-1], text, tokens)
        print(f"{run.name},{plain['loss']:.6f},{plain['accuracy']:.6f},{temperature:.4f},{loss:.6f}", flush=True)


main()
