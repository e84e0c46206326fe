"""Compares the cost of usages at Formwork's prices with that of the package `genai-prices`.

    python3 measure/peers/prices.py

It installs the package from PyPI into a temporary environment (or uses that of PEERS_PYTHON), and computes the cost of each usage of
`prices.json`, which the test `prices::` of `formwork-dialect` writes and compares with arithmetic by hand. Rows that differ are printed with
both prices; each needs a reason in REASONS. Without network it says so and succeeds.
"""

import json
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROVIDERS = {"gemini": "google", "xai": "x-ai", "bedrock": "aws"}
# Why a cost differs, by the name of the model.
REASONS = {
    "deepseek/deepseek-chat": "genai-prices has the prices of DeepSeek-V3 before September 2025, lower from 16:30 to 00:30 UTC",
    "deepseek/deepseek-r1": "genai-prices has the lower price from 16:30 to 00:30 UTC; a limit must hold by day",
    "mistral/mistral-large-latest": "genai-prices resolves the alias to the older model (xtask/src/registry/decisions.csv)",
}


def compare():
    # `exact_numbers.py` of this folder is not the module of that name that the package imports.
    sys.path = [folder for folder in sys.path if os.path.abspath(folder or ".") != HERE]
    from genai_prices import Usage, calc_price

    with open(os.path.join(HERE, "prices.json")) as file:
        rows = json.load(file)
    equal, differ, unexplained = 0, 0, 0
    for row in rows:
        name, usage = f"{row['vendor']}/{row['model']}", row["usage"]
        tokens = {"input_tokens": usage["input"], "output_tokens": usage["output"], "cache_read_tokens": usage["cached"],
                  "cache_write_tokens": usage["written"], "cache_write_1h_tokens": usage["hour"]}
        try:
            tokens = {kind: count for kind, count in tokens.items() if count}
            found = calc_price(Usage(**tokens), model_ref=row["model"], provider_id=PROVIDERS.get(row["vendor"], row["vendor"]))
            theirs = math.ceil(found.total_price * 1_000_000)
        except LookupError:
            found, theirs = None, None
        if theirs == row["micro_usd"]:
            equal += 1
            continue
        differ += 1
        unexplained += name not in REASONS
        print(f"{name} {usage}: {row['micro_usd']} here, {theirs} there ({found and found.model_price}): {REASONS.get(name, '???')}")
    print(f"{len(rows)} usages: {equal} equal, {differ - unexplained} differ for a known reason, {unexplained} without one")
    return 1 if unexplained else 0


def main():
    if os.environ.get("PEERS_INSIDE"):
        return compare()
    with tempfile.TemporaryDirectory() as folder:
        inside = os.environ.get("PEERS_PYTHON")
        if not inside:
            inside = os.path.join(folder, "bin", "python")
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            packages = (["pydantic", "httpx2", "httpx", "typing-extensions"], ["--no-deps", "genai-prices"])
            for some in packages:
                if subprocess.run([inside, "-m", "pip", "install", "-q", *some]).returncode:
                    print("skipped: the package is not there, and cannot be installed")
                    return 0
        return subprocess.run([inside, os.path.abspath(__file__)], env={**os.environ, "PEERS_INSIDE": "1"}).returncode


if __name__ == "__main__":
    sys.exit(main())
