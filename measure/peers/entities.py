"""Extracts entities with LangExtract: the peer of `cargo evals extraction --data entities --sides lang-extract`.

    python3 measure/peers/entities.py BASE_URL MODEL TEMPERATURE MAX_TOKENS < rows.jsonl

Rows are {"input", "system", "examples": [{"input", "answer"}]}, where answers have a list of texts for each type; LangExtract needs at
least one example, and refuses those without entities, which are left out. For each row a line {"value" or "error", "calls", "output"} is printed at once. The value has the texts that
LangExtract found in the input, each once for its type: the others have no place, and LangExtract's users leave them out. It installs the packages
of PyPI into a temporary environment (or uses those of PEERS_PYTHON).
"""

import json
import sys

from environment import run

PACKAGES = ["langextract[openai]==1.7.0"]


def extractions(answer):
    """The examples of LangExtract for an answer."""
    from langextract import data

    return [data.Extraction(extraction_class=name, extraction_text=text) for name, texts in answer.items() for text in texts]


def extract(base_url, model, temperature, max_tokens):
    import langextract
    from langextract import data, factory
    from openai.resources.chat.completions import Completions

    counts = {}
    create = Completions.create

    def counted(self, *args, **more):
        response = create(self, *args, **{"max_tokens": int(max_tokens), **more})
        counts["calls"] += 1
        counts["output"] += (response.usage and response.usage.completion_tokens) or 0
        return response

    Completions.create = counted
    arguments = {"base_url": base_url, "api_key": "k", "temperature": float(temperature)}
    config = factory.ModelConfig(model_id=model, provider="OpenAILanguageModel", provider_kwargs=arguments)
    for line in sys.stdin:
        row = json.loads(line)
        counts.update(calls=0, output=0)
        examples = [data.ExampleData(text=one["input"], extractions=extractions(one["answer"])) for one in row["examples"] if any(one["answer"].values())]
        try:
            found = langextract.extract(
                text_or_documents=row["input"],
                prompt_description=row["system"],
                examples=examples,
                config=config,
                show_progress=False,
            )
            value = {name: [] for name in row["examples"][0]["answer"]}
            for one in found.extractions or []:
                texts = value.get(one.extraction_class)
                if texts is not None and one.char_interval is not None and one.extraction_text not in texts:
                    texts.append(one.extraction_text)
            result = {"value": value}
        except Exception as error:
            result = {"error": str(error)[:300]}
        print(json.dumps({**result, **counts}), flush=True)


if __name__ == "__main__":
    sys.exit(run(__file__, PACKAGES, extract))
