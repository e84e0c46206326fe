"""Extracts people from letters with Daft: `python daft_letters.py OPTIONS OF formwork extract`."""

import json
import os
import sys

import daft
from daft import DataType

FOLDER = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(FOLDER, "..")
# The processes of workers find `formwork_rows` there.
os.environ["PYTHONPATH"] = os.pathsep.join([FOLDER, os.environ.get("PYTHONPATH", "")])
PROGRAM = os.environ.get("FORMWORK", "formwork")


# Each of the two workers starts its own process.
@daft.cls(max_concurrency=2)
class People:
    def __init__(self, options):
        from formwork_rows import Formwork

        self.formwork = Formwork(*options, program=PROGRAM)

    @daft.method.batch(return_dtype=DataType.string(), batch_size=16)
    def extract(self, texts):
        return [json.dumps(row.get("value")) for row in self.formwork(texts.to_pylist())]


options = ["--schema", os.path.join(EXAMPLES, "person.schema.json"), *sys.argv[1:]]
letters = daft.read_json(os.path.join(EXAMPLES, "letters.jsonl"))
people = letters.with_column("person", People(options).extract(letters["input"]))
for row in people.sort("id").to_pylist():
    print(json.dumps({"id": row["id"], "person": json.loads(row["person"])}))
