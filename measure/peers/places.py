"""The places of given entities in their sentences, by `formwork evidence` and by LangExtract's aligner on the same values.

    python3 measure/peers/places.py FORMWORK ../shared/corpora/extraction_conllpp.jsonl

FORMWORK is the program. A value counts as placed if a span was found whose text is the value, and as placed apart if it also shares no
character with the span of another value of its row that is the same word for word: a sentence with two mentions has two places. Values
that their sentence does not have are left out, for both. It installs LangExtract into a temporary environment (or uses that of
PEERS_PYTHON).
"""

import json
import subprocess
import sys

from environment import run

PACKAGES = ["langextract==1.7.0"]


def rows_of(file):
    """The rows as text and entities, in the order of the answer."""
    for line in open(file):
        row = json.loads(line)
        text, value = row["text"], row["gold"]
        entities = [entity for texts in value.values() for entity in texts if entity in text]
        yield text, value, entities


def ours(program, rows):
    """The span of each entity by `formwork evidence`."""
    given = "".join(json.dumps({"id": nth, "input": text, "value": value}) + "\n" for nth, (text, value, _) in enumerate(rows))
    out = subprocess.run([program, "evidence", "--jsonl"], input=given, capture_output=True, text=True, check=True).stdout
    for line, (text, value, _) in zip(out.splitlines(), rows):
        spans = {it["path"]: it["spans"][0] for it in json.loads(line)["evidence"] if it["spans"]}
        placed = []
        for name, texts in value.items():
            for nth, entity in enumerate(texts):
                span = spans.get(f"$.{name}[{nth}]")
                if entity in text:
                    placed.append((entity, (span["start"], span["end"]) if span else None))
        yield placed


def theirs(rows):
    """The span of each entity by LangExtract."""
    from langextract import data, resolver

    for text, _, entities in rows:
        given = [data.Extraction(extraction_class="entity", extraction_text=entity) for entity in entities]
        aligned = resolver.WordAligner().align_extractions([given], text) if given else [[]]
        intervals = [it.char_interval for group in aligned for it in group]
        yield [
            (entity, (it.start_pos, it.end_pos) if it is not None and it.start_pos is not None else None)
            for entity, it in zip(entities, intervals)
        ]


def counted(rows, placed):
    """The number of entities, of those with a span of their text, and of those whose span is their own."""
    count = right = apart = 0
    for (text, _, _), values in zip(rows, placed):
        taken = set()
        for entity, span in values:
            count += 1
            is_right = span is not None and text[span[0] : span[1]] == entity
            right += is_right
            apart += is_right and (entity, span) not in taken
            taken.add((entity, span))
    return count, right, apart


def main(program, file):
    rows = list(rows_of(file))
    print("| places of entities | values | with a span of their text | of their own |\n|---|---|---|---|")
    for name, placed in [("formwork evidence", ours(program, rows)), ("LangExtract 1.7.0", theirs(rows))]:
        count, right, apart = counted(rows, placed)
        print(f"| {name} | {count} | {100 * right / count:.2f} % | {100 * apart / count:.2f} % |")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python3 measure/peers/places.py FORMWORK CORPUS")
    sys.exit(run(__file__, PACKAGES, main))
