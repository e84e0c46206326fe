"""Writes what other projects make of the schemas of a corpus, for `cargo evals corpora --only peers`.

Usage: transforms.py CORPUS > peers.jsonl, where CORPUS has one JSON object with `id` and `schema` a line. Needs the packages
anthropic, litellm, openai and pydantic-ai-slim. Each line of the output has `id`, `peer`, `dialect`, and `schema` or `error`.
"""

import copy
import importlib.metadata
import json
import sys

import anthropic
from anthropic.lib._parse._transform import transform_schema
from litellm.llms.anthropic.chat.transformation import AnthropicConfig
from openai.lib._pydantic import _ensure_strict_json_schema
from pydantic_ai.profiles.google import GoogleJsonSchemaTransformer
from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer

try:
    from pydantic_ai.profiles.anthropic import AnthropicJsonSchemaTransformer
except ImportError:
    from pydantic_ai.providers.anthropic import AnthropicJsonSchemaTransformer


def openai_python(schema):
    return _ensure_strict_json_schema(schema, path=(), root=schema)


def litellm_anthropic(schema):
    return AnthropicConfig.filter_anthropic_output_schema(schema)


PEERS = [
    ("openai", "openai", openai_python),
    ("pydantic-ai", "openai", lambda schema: OpenAIJsonSchemaTransformer(schema, strict=True).walk()),
    ("pydantic-ai", "gemini", lambda schema: GoogleJsonSchemaTransformer(schema).walk()),
    ("pydantic-ai", "anthropic", lambda schema: AnthropicJsonSchemaTransformer(schema, strict=True).walk()),
    ("anthropic", "anthropic", transform_schema),
    ("litellm", "anthropic", litellm_anthropic),
]


def main():
    for name in ("openai", "anthropic", "litellm", "pydantic-ai-slim"):
        print(f"{name} {importlib.metadata.version(name)}", file=sys.stderr)
    with open(sys.argv[1]) as corpus:
        for line in corpus:
            row = json.loads(line)
            for peer, dialect, transform in PEERS:
                out = {"id": row["id"], "peer": peer, "dialect": dialect}
                try:
                    out["schema"] = transform(copy.deepcopy(row["schema"]))
                except Exception as error:  # whatever a transform dies of is its result
                    out["error"] = f"{type(error).__name__}: {error}"[:200]
                try:
                    print(json.dumps(out))
                except (TypeError, ValueError, RecursionError) as error:
                    print(json.dumps({"id": row["id"], "peer": peer, "dialect": dialect, "error": str(error)[:200]}))


main()
