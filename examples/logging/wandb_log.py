"""The metrics of a run to Weights & Biases, while it runs:

    cautious train ... --log.command='python3 wandb_log.py my-project'

A run that is resumed continues its page there."""
import hashlib
import json
import sys

import wandb

page = None
for line in sys.stdin:
    row = json.loads(line)
    if "start" in row:
        start = row["start"]
        page = wandb.init(project=sys.argv[1], name=start["run"].rsplit("/", 1)[-1], config=start["config"],
                          id=hashlib.sha256(start["run"].encode()).hexdigest()[:16], resume="allow")
    elif "end" in row:
        page.summary.update(row["end"])
    else:
        page.log({name: value for name, value in row.items() if value is not None}, step=row["step"])
if page:
    page.finish()
