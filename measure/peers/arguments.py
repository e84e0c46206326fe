"""Extracts values with instructor: the peer of `cargo evals extraction --sides instructor`.

    python3 measure/peers/arguments.py BASE_URL MODEL TEMPERATURE MAX_TOKENS < rows.jsonl

Rows are {"messages", "schema"}; for each one a line {"value" or "error", "calls", "output"} is printed at once. The models of
pydantic are made from the JSON Schemas, with all keywords that both have, and unknown members are refused as the schemas do. It
installs the packages of PyPI into a temporary environment (or uses those of PEERS_PYTHON).
"""

import json
import sys

from environment import run

PACKAGES = ["instructor", "openai"]


def type_of(schema, name):
    """The type of pydantic for a schema."""
    from typing import Any, Literal, Optional, Union

    from pydantic import ConfigDict, Field, create_model

    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    if "const" in schema:
        return Literal[schema["const"]]
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return Union[tuple(type_of(one, f"{name}_{nth}") for nth, one in enumerate(schema[union]))]
    kind = schema.get("type")
    if isinstance(kind, list):
        return Union[tuple(type_of({**schema, "type": one}, f"{name}_{one}") for one in kind)]
    if kind == "object" and schema.get("properties"):
        members, required = {}, schema.get("required", [])
        for nth, (member, part) in enumerate(schema["properties"].items()):
            inner = type_of(part, f"{name}_{nth}")
            bounds = {"minimum": "ge", "maximum": "le", "minItems": "min_length", "maxItems": "max_length"}
            given = {ours: part[theirs] for theirs, ours in bounds.items() if theirs in part}
            extra = {"description": part.get("description"), "alias": member, **given}
            is_required = member in required
            field = Field(**extra) if is_required else Field(default=None, **extra)
            members[f"m{nth}"] = (inner if is_required else Optional[inner], field)
        closed = "forbid" if schema.get("additionalProperties") is False else "allow"
        config = ConfigDict(extra=closed, populate_by_name=False)
        return create_model(name, __config__=config, **members)
    if kind == "array":
        return list[type_of(schema["items"], f"{name}_item")] if "items" in schema else list
    return {"string": str, "integer": int, "number": float, "boolean": bool, "object": dict, "null": type(None)}.get(kind, Any)


def extract(base_url, model, temperature, max_tokens):
    import instructor
    from openai import OpenAI

    for line in sys.stdin:
        row = json.loads(line)
        counts = {"calls": 0, "output": 0}

        def heard(response, counts=counts):
            counts["calls"] += 1
            counts["output"] += (response.usage and response.usage.completion_tokens) or 0

        try:
            client = instructor.from_openai(OpenAI(base_url=base_url, api_key="k"), mode=instructor.Mode.JSON_SCHEMA)
            client.on("completion:response", heard)
            value = client.chat.completions.create(
                model=model,
                response_model=type_of(row["schema"], "answer"),
                messages=row["messages"],
                temperature=float(temperature),
                max_tokens=int(max_tokens),
                max_retries=3,
            )
            result = {"value": json.loads(value.model_dump_json(by_alias=True, exclude_unset=True))}
        except Exception as error:
            result = {"error": str(error)[:300]}
        print(json.dumps({**result, **counts}), flush=True)


if __name__ == "__main__":
    sys.exit(run(__file__, PACKAGES, extract))
