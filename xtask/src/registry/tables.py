"""Makes the price table from two public ones, which packages of PyPI carry: `genai-prices` and `litellm`.

    python3 tables.py DECISIONS OUT [PYTHON]

It installs both packages without their dependencies into a temporary environment (or uses PYTHON's), writes the merged table to
OUT/prices.csv, LiteLLM's file to OUT/litellm.json, and the names of all models that one of them prices to OUT/names.txt, and prints
the disagreements that DECISIONS does not settle, and how many each of its rows settles. A row of DECISIONS is
`pattern,table,source`: the table is `litellm`, `genai` or `dearer`, the first matching row counts.
"""

import csv
import datetime
import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile

# Our kind of provider, LiteLLM's names of it, and that of genai-prices.
VENDORS = [
    ("openai", ["openai"], "openai"), ("anthropic", ["anthropic"], "anthropic"), ("gemini", ["gemini"], "google"),
    ("mistral", ["mistral"], "mistral"), ("xai", ["xai"], "x-ai"), ("deepseek", ["deepseek"], "deepseek"),
    ("groq", ["groq"], "groq"), ("cohere", ["cohere", "cohere_chat"], "cohere"), ("cerebras", ["cerebras"], "cerebras"),
    ("perplexity", ["perplexity"], "perplexity"), ("azure", ["azure", "azure_ai"], "azure"),
    ("bedrock", ["bedrock", "bedrock_converse"], "aws"), ("fireworks", ["fireworks_ai"], "fireworks"),
    ("together", ["together_ai"], "together"), ("openrouter", ["openrouter"], "openrouter"),
    ("vertex_ai", ["vertex_ai", "vertex_ai-*"], None),
]
# The router of Hugging Face names the host of a model after it: `Qwen/Qwen3-32B:groq`.
ROUTER = ("huggingface", "huggingface_")
FIELDS = ["input", "output", "cache_read", "cache_write", "cache_write_hour", "batch_percent", "above", "long_input",
          "long_output", "long_cache_read"]
NAMES = {"input_cost_per_token": "input", "output_cost_per_token": "output", "cache_read_input_token_cost": "cache_read",
         "cache_creation_input_token_cost": "cache_write", "cache_creation_input_token_cost_above_1hr": "cache_write_hour",
         "input_cost_per_token_batches": "batch_input"}
CHAT = ("chat", "responses", "completion")


def of_litellm(model):
    row = {ours: round(model[theirs] * 1e6, 6) for theirs, ours in NAMES.items() if isinstance(model.get(theirs), (int, float))}
    for name, value in model.items():
        long = re.fullmatch(r"(input|output|cache_read)_(?:input_)?(?:token_)?cost(?:_per_token)?_above_(\d+)k_tokens", name)
        if long and row.get("above", int(long[2]) * 1000) == int(long[2]) * 1000:
            row |= {"long_" + long[1]: round(value * 1e6, 6), "above": int(long[2]) * 1000}
    if row.get("input") and row.get("batch_input"):
        row["batch_percent"] = round(100 * row["batch_input"] / row["input"])
    return row


def of_genai(model, now):
    price, row = model.get_prices(now), {}
    for name in ("input", "output", "cache_read", "cache_write"):
        value = getattr(price, name + "_mtok", None)
        if value is not None and hasattr(value, "base"):
            if value.tiers and name != "cache_write":
                row |= {"long_" + name: float(value.tiers[0].price), "above": value.tiers[0].start}
            value = value.base
        if value is not None:
            row[name] = float(value)
    return row


def merged(litellm, providers, decisions):
    """Returns the rows by name, and the disagreements that no decision settles."""
    now, rows, open_, settled = datetime.datetime.now(datetime.timezone.utc), {}, [], {}
    names_of_all = set()
    for vendor, theirs, genai in VENDORS:
        provider, found = providers.get(genai), {}
        for name, model in litellm.items():
            is_theirs = any(fnmatch.fnmatch(model.get("litellm_provider") or "", one) for one in theirs)
            if not is_theirs or model.get("mode") not in CHAT:
                continue
            short = name
            for prefix in [*theirs, "vertex_ai", "bedrock", "converse"]:
                short = short.removeprefix(prefix + "/")
            row = of_litellm(model)
            if row.get("input") or row.get("output"):
                names_of_all.add(f"{vendor}/{short}")
            # A price of 0 of a vendor that charges means that it is not known.
            if row.get("input") is not None and row.get("output") is not None and (row["output"] or ":free" in short):
                # Of two names of LiteLLM for one vendor, the first counts.
                if short not in found or model["litellm_provider"] == theirs[0]:
                    found[short] = row
        of_provider = [model.id for model in (provider.models if provider else []) if of_genai(model, now).get("output")]
        names_of_all.update(f"{vendor}/{name}" for name in of_provider)
        names = list(found) + [model.id for model in (provider.models if provider else []) if model.id not in found]
        for name in names:
            one, other = found.get(name), None
            model = provider.find_model(name.lower()) if provider else None
            if model:
                other = of_genai(model, now)
                if other.get("input") is None or other.get("output") is None:
                    other = None
            key, tables = f"{vendor}/{name}".lower(), "L" * bool(one) + "G" * bool(other)
            if one and other:
                differs = [field for field in ("input", "output", "cache_read") if field in one and field in other
                           and abs(one[field] - other[field]) > 1e-6]
                decision = next((one for one in decisions if fnmatch.fnmatch(key, one[0])), None)
                choice = decision and decision[1]
                if differs and choice is None:
                    open_.append(f"{key}: litellm {one}, genai {other}")
                    continue
                if differs:
                    settled[decision[0]] = settled.get(decision[0], 0) + 1
                if differs and (choice == "genai" or choice == "dearer" and other["output"] > one["output"]):
                    one, tables = other, "g"
                else:
                    tables = "l" if differs else "LG"
                    # What one table does not say is the other's.
                    one = one if differs else other | one
            row = one or other
            if row and row.get("cache_read", 0) > row["input"]:
                # No vendor charges more for reading the cache than without one.
                row = row | {"cache_read": None}
            if row and key not in rows and "," not in key:
                rows[key] = row | {"tables": tables}
    for id_, provider in providers.items():
        for model in provider.models if id_.startswith(ROUTER[1]) else []:
            row, name = of_genai(model, now), f"{ROUTER[0]}/{model.id}:{id_.removeprefix(ROUTER[1])}"
            if row.get("input") is not None and row.get("output"):
                rows[name.lower()] = row | {"tables": "G"}
                names_of_all.add(name)
    return rows, open_, settled, names_of_all


def write(decisions, out):
    import importlib.util

    from genai_prices.data import providers
    folder = os.path.dirname(importlib.util.find_spec("litellm").origin)
    with open(os.path.join(folder, "model_prices_and_context_window_backup.json")) as file:
        litellm = json.load(file)
    with open(decisions) as file:
        decided = [row for row in csv.reader(file) if row and not row[0].startswith("#")]
    rows, open_, settled, names = merged(litellm, {provider.id: provider for provider in providers}, decided)
    number = lambda value: "" if value is None else f"{value:.6f}".rstrip("0").rstrip(".")
    with open(os.path.join(out, "prices.csv"), "w") as file:
        file.write(f"name,{','.join(FIELDS)},tables\n")
        for name in sorted(rows):
            row = rows[name]
            file.write(",".join([name, *(number(row.get(field)) for field in FIELDS), row["tables"]]) + "\n")
    with open(os.path.join(out, "names.txt"), "w") as file:
        file.write("".join(f"{name}\n" for name in sorted(names)))
    with open(os.path.join(out, "litellm.json"), "w") as file:
        json.dump(litellm, file)
    print(f"{len(rows)} prices, {sum(settled.values())} disagreements settled by decisions, {len(open_)} open")
    print("\n".join(f"settled: {count} by {pattern}" for pattern, count in settled.items()))
    print("\n".join(open_))
    return 1 if open_ else 0


def main():
    decisions, out, *python = sys.argv[1:]
    if os.environ.get("TABLES_INSIDE"):
        return write(decisions, out)
    with tempfile.TemporaryDirectory() as folder:
        inside = python[0] if python else os.path.join(folder, "bin", "python")
        if not python:
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            for packages in (["pydantic", "httpx2", "httpx", "typing-extensions"], ["--no-deps", "genai-prices", "litellm"]):
                subprocess.run([inside, "-m", "pip", "install", "-q", *packages], check=True)
        environment = {**os.environ, "TABLES_INSIDE": "1"}
        return subprocess.run([inside, os.path.abspath(__file__), decisions, out], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
