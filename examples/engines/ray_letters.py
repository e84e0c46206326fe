"""Extracts people from letters with Ray Data: `python ray_letters.py OPTIONS OF formwork extract`."""

import json
import os
import sys

import ray

FOLDER = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(FOLDER, "..")
PROGRAM = os.environ.get("FORMWORK", "formwork")


class People:
    def __init__(self, options):
        from formwork_rows import Formwork

        self.formwork = Formwork(*options, program=PROGRAM)

    def __call__(self, batch):
        batch["person"] = [json.dumps(row.get("value")) for row in self.formwork(batch["input"])]
        return batch


ray.init(runtime_env={"env_vars": {"PYTHONPATH": FOLDER}})
options = ["--schema", os.path.join(EXAMPLES, "person.schema.json"), *sys.argv[1:]]
letters = ray.data.read_json(os.path.join(EXAMPLES, "letters.jsonl"), file_extensions=["jsonl"])
# Each of the two actors starts its own process.
people = letters.map_batches(People, fn_constructor_args=[options], concurrency=2, batch_size=16)
for row in sorted(people.take_all(), key=lambda row: row["id"]):
    print(json.dumps({"id": row["id"], "person": json.loads(row["person"])}))
