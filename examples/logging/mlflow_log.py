"""The metrics of a run to MLflow, while it runs:

    cautious train ... --log.command='python3 mlflow_log.py my-experiment'

A run that is resumed is a new run there, with the same name."""
import json
import sys

import mlflow


def flat(table, prefix=""):
    for key, value in table.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


mlflow.set_experiment(sys.argv[1])
for line in sys.stdin:
    row = json.loads(line)
    if "start" in row:
        mlflow.start_run(run_name=row["start"]["run"].rsplit("/", 1)[-1])
        mlflow.log_params(dict(flat(row["start"]["config"])))
    elif "end" in row:
        mlflow.log_dict(row["end"], "summary.json")
        mlflow.end_run("FINISHED" if row["end"]["status"] == "done" else "KILLED")
    else:
        mlflow.log_metrics({name: value for name, value in row.items() if value is not None}, step=row["step"])
