"""Compares reading and judging with exact numbers with a build without them, by counted instructions.

    python3 measure/peers/exact_numbers.py

It builds `measure/peers/exact_numbers` twice (with Formwork and serde_json's `float_roundtrip`, and with serde_json alone) and counts the
instructions of each step with valgrind: (read exactly and judge) / (parse without exact numbers and judge). The goal is at most 1.15
for every document. Exit code 1 if a document misses it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
GOAL = 1.15
# A small document is repeated more often, because the first repetitions have an allocator without free blocks.
TIMES = {True: (100, 1100), False: (2, 12)}


def record(amount):
    return {"type": "object", "required": ["id", "amount", "name"], "properties": {
        "id": {"type": "integer"}, "amount": amount, "name": {"type": "string"}}}


ROWS = {"type": "array", "items": record({"type": "number", "minimum": 0})}
TEXTS = {"type": "array", "items": record({"type": "string"})}
# The documents have no number that a double changes: such a number is a warning or an error, and no benchmark.
DOCUMENTS = {
    "500 rows, decimals of 17 digits": (ROWS, [
        {"id": n * 123456789012345, "amount": n / 7, "name": f"row {n}, 12.50"} for n in range(1, 501)]),
    "500 rows, prices": (ROWS, [
        {"id": n, "amount": round(n * 1.37, 2), "name": f"article {n}"} for n in range(1, 501)]),
    "500 rows of texts": (TEXTS, [
        {"id": n, "amount": "twelve euros fifty", "name": f"a text of some words, number {n}"} for n in range(1, 501)]),
    "one small object": (ROWS["items"], {"id": 34, "amount": 12.5, "name": "Maria Lindqvist"}),
}


def build(target, *features):
    manifest = os.path.join(HERE, "exact_numbers", "Cargo.toml")
    subprocess.run(["cargo", "build", "--release", "--quiet", "--locked", "--manifest-path", manifest, "--target-dir", target, *features],
                   check=True)
    return os.path.join(target, "release", "numbers")


def instructions(program, step, document, schema):
    """Returns the instructions of one repetition: the difference of two runs, without the beginning of the program."""
    counts = []
    repetitions = TIMES[os.path.getsize(document) < 1000]
    for times in repetitions:
        ran = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, step, document, schema, str(times)],
                             check=True, capture_output=True, text=True)
        counts.append(int(re.search(r"Collected : (\d+)", ran.stderr).group(1)))
    return (counts[1] - counts[0]) / (repetitions[1] - repetitions[0])


def main():
    if not shutil.which("valgrind"):
        sys.exit("valgrind counts the instructions: install it")
    target = os.path.join(HERE, "..", "..", "target", "numbers")
    exact, plain = build(os.path.join(target, "exact"), "--features", "exact"), build(os.path.join(target, "plain"))
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        for name, (schema, document) in DOCUMENTS.items():
            files = []
            for part, value in (("document", document), ("schema", schema)):
                files.append(os.path.join(folder, part))
                with open(files[-1], "w", encoding="utf-8") as file:
                    json.dump(value, file)
            whole = instructions(exact, "exact", *files)
            parse, judge = instructions(plain, "parse", *files), instructions(exact, "judge", *files)
            ratio = whole / (parse + judge)
            missed |= ratio > GOAL
            print(f"{name}: {whole:,.0f} / ({parse:,.0f} + {judge:,.0f}) = {ratio:.2f} (goal {GOAL})")
    sys.exit(missed)


main()
