"""Compares the requests of `formwork extract` with those of the vendors' own Python packages, field by field.

Usage: vendor_requests.py FORMWORK, the path of the command. Each case is sent to a server that this script plays, once by the package
and once by the command. Prints a line for each case; exits with 1 if a field differs that no line of `ALLOWED` explains.
"""

import http.server
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import threading

import anthropic
import openai
from google import genai

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
SYSTEM = "You extract people."
TEXT = "Maria is 34."
ANSWER = '{"name": "Maria", "age": 34}'

# Differences in meaning that are meant, by case and path; `*` is every case.
ALLOWED = {
    ("openai chat", "response_format.json_schema.name"): "the name of a schema is free: ours is that of the schema",
    ("openai responses", "text.format.name"): "the name of a schema is free: ours is that of the schema",
    ("openai chat tool", "tools.0.function.name"): "the name of the tool is that of the schema",
    ("openai chat tool", "tool_choice.function.name"): "the name of the tool is that of the schema",
    ("anthropic tool", "tools.0.name"): "the name of the tool is that of the schema",
    ("anthropic tool", "tool_choice.name"): "the name of the tool is that of the schema",
    ("anthropic messages", "header authorization"): "the vendor takes a key in either header: ours is `x-api-key`",
    ("anthropic messages", "header x-api-key"): "the vendor takes a key in either header: ours is `x-api-key`",
    ("anthropic messages", "header anthropic-version"): "ours is 2023-06-01, which this project was built against",
    ("anthropic tool", "header authorization"): "the vendor takes a key in either header: ours is `x-api-key`",
    ("anthropic tool", "header x-api-key"): "the vendor takes a key in either header: ours is `x-api-key`",
    ("anthropic tool", "header anthropic-version"): "ours is 2023-06-01, which this project was built against",
    ("gemini", "path"): "ours is the version of the recorded exchanges, `v1beta`, which has schemas",
    ("*", "store"): "the packages leave it out; the vendor's default is to store responses, ours is not to",
}


class Capture(http.server.BaseHTTPRequestHandler):
    """Keeps the last request, and answers in the protocol of its path."""

    protocol_version = "HTTP/1.1"
    last = None

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        Capture.last = (self.path.split("?")[0], headers, body)
        sent = json.dumps(answer(self.path, body)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)


def answer(path, body):
    called = next((tool.get("function", tool).get("name") for tool in body.get("tools", []) if isinstance(tool, dict)), None)
    if "chat/completions" in path:
        message = {"role": "assistant", "content": None if called else ANSWER}
        if called:
            function = {"name": called, "arguments": ANSWER}
            message["tool_calls"] = [{"id": "c", "type": "function", "function": function}]
        reason = "tool_calls" if called else "stop"
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        choices = [{"index": 0, "message": message, "finish_reason": reason}]
        return {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices, "usage": usage}
    if "responses" in path:
        content = [{"type": "output_text", "text": ANSWER, "annotations": []}]
        output = [{"type": "message", "id": "m", "status": "completed", "role": "assistant", "content": content}]
        return {"id": "r", "object": "response", "created_at": 1, "status": "completed", "model": "m", "output": output,
                "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
                "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}
    if "messages" in path:
        block = {"type": "text", "text": ANSWER}
        if called:
            block = {"type": "tool_use", "id": "t", "name": called, "input": json.loads(ANSWER)}
        return {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [block],
                "stop_reason": "tool_use" if called else "end_turn", "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1}}
    content = {"role": "model", "parts": [{"text": ANSWER}]}
    return {"candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 1}}


def by_openai(url):
    return openai.OpenAI(base_url=url + "/v1", api_key="sk-test", max_retries=0)


def chat_format():
    return {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": SCHEMA}}


MESSAGES = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": TEXT}]


def openai_chat(url):
    by_openai(url).chat.completions.create(
        model="gpt-4o-mini", messages=MESSAGES, response_format=chat_format(), temperature=0.5, seed=7, max_completion_tokens=100
    )


def openai_chat_tool(url):
    tool = {"name": "person", "description": "Gives the answer.", "parameters": SCHEMA, "strict": True}
    by_openai(url).chat.completions.create(
        model="gpt-4o-mini", messages=MESSAGES, tools=[{"type": "function", "function": tool}], parallel_tool_calls=False,
        tool_choice={"type": "function", "function": {"name": "person"}}, temperature=0.5, seed=7, max_completion_tokens=100,
    )


def openai_responses(url):
    text = {"format": {"type": "json_schema", "name": "person", "strict": True, "schema": SCHEMA}}
    by_openai(url).responses.create(
        model="gpt-4o-mini", instructions=SYSTEM, input=TEXT, text=text, temperature=0.5, max_output_tokens=100
    )


def by_anthropic(url):
    return anthropic.Anthropic(base_url=url, api_key="sk-test", max_retries=0)


def anthropic_messages(url):
    by_anthropic(url).messages.create(
        model="claude-sonnet-4-5", max_tokens=100, system=SYSTEM, messages=[{"role": "user", "content": TEXT}],
        extra_body={"temperature": 0.5, "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    )


def anthropic_tool(url):
    tool = {"name": "person", "description": "Gives the answer.", "input_schema": SCHEMA, "strict": True}
    by_anthropic(url).messages.create(
        model="claude-sonnet-4-5", max_tokens=100, system=SYSTEM, messages=[{"role": "user", "content": TEXT}],
        tools=[tool], tool_choice={"type": "tool", "name": "person", "disable_parallel_tool_use": True},
        extra_body={"temperature": 0.5},
    )


def gemini(url):
    client = genai.Client(api_key="sk-test", http_options={"base_url": url})
    config = {
        "system_instruction": SYSTEM, "response_mime_type": "application/json", "response_json_schema": SCHEMA,
        "temperature": 0.5, "seed": 7, "max_output_tokens": 100,
    }
    client.models.generate_content(model="gemini-2.5-flash", contents=TEXT, config=config)


# The case, the package's call, and the kind, model and further lines of the section for the command.
CASES = [
    ("openai chat", openai_chat, "openai", "gpt-4o-mini", "/v1", "stream = false"),
    ("openai chat tool", openai_chat_tool, "openai", "gpt-4o-mini", "/v1", 'stream = false\nmodes = ["tool"]'),
    ("openai responses", openai_responses, "openai", "gpt-4o-mini", "/v1", 'stream = false\napi = "responses"'),
    ("anthropic messages", anthropic_messages, "anthropic", "claude-sonnet-4-5", "", "stream = false"),
    ("anthropic tool", anthropic_tool, "anthropic", "claude-sonnet-4-5", "", 'stream = false\nmode = "tool"'),
    ("gemini", gemini, "gemini", "gemini-2.5-flash", "", "stream = false"),
]

KEYS = ("authorization", "x-api-key", "x-goog-api-key", "anthropic-version", "anthropic-beta", "content-type")


def by_command(formwork, url, kind, model, base, section):
    with tempfile.TemporaryDirectory() as folder:
        config, schema = os.path.join(folder, "formwork.toml"), os.path.join(folder, "person.schema.json")
        with open(config, "w") as file:
            file.write(f'[providers.{kind}]\nkind = "{kind}"\nmodel = "{model}"\nbase_url = "{url}{base}"\n{section}\n')
        with open(schema, "w") as file:
            json.dump(SCHEMA, file)
        sampling = ["--temperature", "0.5", "--seed", "7", "--max-tokens", "100"]
        asked = [formwork, "extract", "--config", config, "-m", f"{kind}/{model}", "--schema", schema, "--system", SYSTEM]
        done = subprocess.run(asked + sampling + [TEXT], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{kind}: {done.stderr}")


def meaning(body):
    """The request without differences of form: system messages and texts in one shape, members that say nothing left out."""
    if isinstance(body, list):
        return [meaning(item) for item in body]
    if not isinstance(body, dict):
        return body
    plain = {}
    for name, value in body.items():
        value = meaning(value)
        if name in ("system", "content", "input") and isinstance(value, list):
            texts = [part.get("text") for part in value if isinstance(part, dict) and "text" in part]
            if len(texts) == len(value) == 1:
                value = texts[0]
        # A text alone is a message of the user.
        if name == "input" and isinstance(value, list) and len(value) == 1 and value[0].keys() == {"content"}:
            value = value[0]["content"]
        # Each vendor's default.
        if (name, value) in (("stream", False), ("role", "user"), ("type", "message")) or name in ("cache_control",):
            continue
        plain[name] = value
    return plain


def flat(value, path=""):
    if isinstance(value, dict) and value:
        for name, member in value.items():
            yield from flat(member, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from flat(item, f"{path}.{index}" if path else str(index))
    else:
        yield path, value


def main():
    formwork = sys.argv[1]
    os.environ.update(OPENAI_API_KEY="sk-test", ANTHROPIC_API_KEY="sk-test", GEMINI_API_KEY="sk-test")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Capture)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    versions = {name: importlib.metadata.version(name) for name in ("openai", "anthropic", "google-genai")}
    print("packages:", ", ".join(f"{name} {version}" for name, version in versions.items()))
    wrong = 0
    for case, call, kind, model, base, section in CASES:
        call(url)
        theirs = Capture.last
        by_command(formwork, url, kind, model, base, section)
        ours = Capture.last
        differences = [] if theirs[0] == ours[0] else [("path", theirs[0], ours[0])]
        for name in KEYS:
            if theirs[1].get(name) != ours[1].get(name):
                differences.append((f"header {name}", theirs[1].get(name), ours[1].get(name)))
        left, right = dict(flat(meaning(theirs[2]))), dict(flat(meaning(ours[2])))
        for path in sorted(left.keys() | right.keys()):
            if left.get(path, "absent") != right.get(path, "absent"):
                differences.append((path, left.get(path, "absent"), right.get(path, "absent")))
        meant = [found for found in differences if (case, found[0]) in ALLOWED or ("*", found[0]) in ALLOWED]
        others = [found for found in differences if found not in meant]
        print(f"{'ok   ' if not others else 'WRONG'} {case}: {len(left)} fields of the package's, {len(meant)} differences that are meant")
        for path, package, command in others:
            print(f"      {path}: the package sends {package!r}, the command {command!r}")
        wrong += bool(others)
    sys.exit(1 if wrong else 0)


main()
