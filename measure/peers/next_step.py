"""Extracts an invoice with instructor and Pydantic AI from a server whose first answer is damaged: the peers of
`cargo evals bench next-step`, which counts the bytes.

    python3 measure/peers/next_step.py ADDRESS TEXT DAMAGE...

It installs the packages of PyPI into a temporary environment (or uses those of PEERS_PYTHON).
"""

import sys

from environment import run

PACKAGES = ["instructor", "openai", "pydantic-ai-slim[openai]"]


def extract(address, text, *damages):
    import asyncio
    import urllib.request

    import instructor
    from openai import OpenAI
    from pydantic import BaseModel, Field
    from pydantic_ai import Agent, NativeOutput
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    class Item(BaseModel):
        sku: str
        quantity: int = Field(ge=0)
        tags: list[str]
        price: float

    class Invoice(BaseModel):
        number: str
        buyer: str
        items: list[Item]
        seller: str
        total: float

    def url(peer, damage):
        return f"{address}/{peer}/{damage}/v1"

    def done(peer, damage):
        urllib.request.urlopen(f"{address}/{peer}/{damage}/done").read()

    for damage in damages:
        try:
            client = instructor.from_openai(
                OpenAI(base_url=url("instructor", damage), api_key="k"), mode=instructor.Mode.JSON_SCHEMA
            )
            messages = [{"role": "user", "content": text}]
            client.chat.completions.create(model="gpt-4o", response_model=Invoice, messages=messages, max_retries=3)
            done("instructor", damage)
        except Exception as error:
            print(f"instructor, {damage}: {str(error)[:200]}", file=sys.stderr)
        try:
            provider = OpenAIProvider(base_url=url("pydantic-ai", damage), api_key="k")
            agent = Agent(OpenAIChatModel("gpt-4o", provider=provider), output_type=NativeOutput(Invoice), retries=3)
            asyncio.run(agent.run(text))
            done("pydantic-ai", damage)
        except Exception as error:
            print(f"pydantic-ai, {damage}: {str(error)[:200]}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(run(__file__, PACKAGES, extract))
