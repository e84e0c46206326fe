"""Runs clients of other languages against `formwork serve` in front of a server that this script plays.

Usage: clients.py FORMWORK NAME..., the path of the command and the Python clients to run. `node=DIR` runs clients.mjs with the
packages of that folder. Prints a line for each check; exits with 1 if one fails.
"""

import http.server
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

import anthropic
import ollama
import openai
from pydantic import BaseModel


class Person(BaseModel):
    name: str
    age: int


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "maximum": 150}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
TOOL = {"name": "person", "description": "Saves a person", "input_schema": SCHEMA}


class Upstream(http.server.BaseHTTPRequestHandler):
    """Speaks Chat Completions. The first word of the first user message says how it behaves."""

    protocol_version = "HTTP/1.1"
    calls = 0
    asked = threading.Event()
    left = threading.Event()

    def log_message(self, *_):
        pass

    def do_POST(self):
        Upstream.calls += 1
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = json.dumps([message["content"] for message in request["messages"] if message["role"] == "user"])
        act = next((act for act in ("refuse", "cut", "never", "busy", "down", "key", "hang") if f"{act}:" in text), "mend")
        if act in ("busy", "down", "key"):
            return self.send({"error": {"message": act}}, {"busy": 429, "down": 503, "key": 401}[act])
        if act == "hang":
            # Nothing is sent: the end of the connection is the gateway's doing.
            Upstream.asked.set()
            self.connection.settimeout(30)
            if self.rfile.read(1) == b"":
                Upstream.left.set()
            self.close_connection = True
            return
        # A whole document answers a patch as well.
        is_first = all(message["role"] != "assistant" for message in request["messages"])
        wrong, right = '{"name": "Maria", "age": "old"}', 'Sure:\n```json\n{"name": "Maria", "age": 34}\n```'
        message = {"role": "assistant", "content": wrong if act == "never" or is_first else right}
        if act == "refuse":
            message = {"role": "assistant", "content": None, "refusal": "I will not."}
        if act == "cut":
            message["content"] = '{"name": "Mar'
        choice = {"index": 0, "message": message, "finish_reason": "length" if act == "cut" else "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        self.send({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage})

    def send(self, body, status=200):
        body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def user(act):
    return [{"role": "user", "content": f"{act}: Maria, 34, moved to Lisbon."}]


def raised(kind, call, status=None):
    try:
        found = call()
    except kind as error:
        seen = getattr(error, "status_code", None)
        assert status is None or seen == status, f"status {seen}"
        return error
    raise AssertionError(f"expected {kind.__name__}, got {found}")


def close_early(open_stream):
    Upstream.asked.clear()
    Upstream.left.clear()
    stream = open_stream()
    next(iter(stream))
    # The stream begins before the call upstream does.
    assert Upstream.asked.wait(20), "there was no call upstream"
    stream.close()
    assert Upstream.left.wait(20), "the call upstream went on"


def with_openai(url):
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)
    chat, maria = client.chat.completions, Person(name="Maria", age=34)

    def parse(act, **more):
        return chat.parse(model="primary", messages=user(act), response_format=Person, **more).choices[0].message

    def streamed():
        with chat.stream(model="primary", messages=user("mend"), response_format=Person) as stream:
            assert stream.get_final_completion().choices[0].message.parsed == maria

    def tool():
        tools = [openai.pydantic_function_tool(Person)]
        got = chat.parse(model="primary", messages=user("mend"), tools=tools, tool_choice="required")
        assert got.choices[0].message.tool_calls[0].function.parsed_arguments == maria

    def tool_streamed():
        tools = [openai.pydantic_function_tool(Person)]
        with chat.stream(model="primary", messages=user("mend"), tools=tools, tool_choice="required") as stream:
            final = stream.get_final_completion()
        assert final.choices[0].message.tool_calls[0].function.parsed_arguments == maria

    def response():
        got = client.responses.parse(model="primary", input=user("mend"), text_format=Person)
        assert got.output_parsed == maria

    def response_streamed():
        with client.responses.stream(model="primary", input=user("mend"), text_format=Person) as stream:
            assert stream.get_final_response().output_parsed == maria

    def not_retried():
        before = Upstream.calls
        raised(openai.UnprocessableEntityError, lambda: client.with_options(max_retries=2).chat.completions.parse(
            model="primary", messages=user("never"), response_format=Person), 422)
        assert Upstream.calls - before <= 4, f"{Upstream.calls - before} calls: the client asked again"

    def violations():
        error = raised(openai.UnprocessableEntityError, lambda: parse("never"))
        assert error.body["violations"][0]["path"] == "$.age", error.body

    def failed_stream():
        def call():
            stream = chat.create(model="primary", messages=user("never"), stream=True, response_format={
                "type": "json_schema", "json_schema": {"name": "p", "schema": SCHEMA, "strict": True}})
            return list(stream)
        raised(openai.APIError, call)

    def cancelled():
        close_early(lambda: chat.create(model="primary", messages=user("hang"), stream=True, response_format={
            "type": "json_schema", "json_schema": {"name": "p", "schema": SCHEMA, "strict": True}}))

    def parsed():
        assert parse("mend").parsed == maria

    def refused():
        assert parse("refuse").refusal == "I will not."

    return {
        "a typed object after a wrong answer": parsed,
        "the same, streamed": streamed,
        "a tool": tool,
        "a tool, streamed": tool_streamed,
        "responses": response,
        "responses, streamed": response_streamed,
        "a refusal": refused,
        "a truncation": lambda: raised(openai.LengthFinishReasonError, lambda: parse("cut")),
        "an unknown model, 404": lambda: raised(openai.NotFoundError, lambda: chat.create(model="other", messages=user("mend"))),
        "no valid answer, 422 with violations": violations,
        "no valid answer is not paid for twice": not_retried,
        "a stream without a valid answer": failed_stream,
        "busy, 429": lambda: raised(openai.RateLimitError, lambda: parse("busy"), 429),
        "down, 503": lambda: raised(openai.InternalServerError, lambda: parse("down"), 503),
        "our key is wrong, 502": lambda: raised(openai.InternalServerError, lambda: parse("key"), 502),
        "a stream that is closed ends the call": cancelled,
        "models": lambda: [model.id for model in client.models.list()].index("primary"),
    }


def with_anthropic(url):
    client = anthropic.Anthropic(base_url=url, api_key="any", max_retries=0)
    format = {"format": {"type": "json_schema", "schema": SCHEMA}}
    forced = {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "person"}}

    def create(act, **more):
        return client.messages.create(model="primary", max_tokens=100, messages=user(act), **more)

    def parsed():
        assert json.loads(create("mend", output_config=format).content[0].text)["age"] == 34

    def tool():
        block = create("mend", **forced).content[0]
        assert block.type == "tool_use" and Person(**block.input).age == 34

    def streamed():
        with client.messages.stream(model="primary", max_tokens=100, messages=user("mend"), **forced) as stream:
            message = stream.get_final_message()
        assert message.stop_reason == "tool_use" and message.content[0].input == {"name": "Maria", "age": 34}

    def text_streamed():
        with client.messages.stream(model="primary", max_tokens=100, messages=user("mend"), output_config=format) as stream:
            assert json.loads("".join(stream.text_stream)) == {"name": "Maria", "age": 34}

    def refused():
        assert create("refuse", **forced).stop_reason == "refusal"

    def cut():
        assert create("cut", output_config=format).stop_reason == "max_tokens"

    def cancelled():
        close_early(lambda: client.messages.create(
            model="primary", max_tokens=100, messages=user("hang"), stream=True, **forced))

    return {
        "a document after a wrong answer": parsed,
        "the same, streamed": text_streamed,
        "a forced tool": tool,
        "a forced tool, streamed": streamed,
        "a refusal": refused,
        "a truncation": cut,
        "an unknown model, 404": lambda: raised(anthropic.NotFoundError, lambda: client.messages.create(
            model="other", max_tokens=9, messages=user("mend"))),
        "no valid answer, 422": lambda: raised(anthropic.UnprocessableEntityError, lambda: create("never", **forced)),
        "busy, 429": lambda: raised(anthropic.RateLimitError, lambda: create("busy", **forced)),
        "down, 503": lambda: raised(anthropic.InternalServerError, lambda: create("down", **forced), 503),
        "a stream that is closed ends the call": cancelled,
        "models": lambda: [model.id for model in client.models.list()].index("primary"),
    }


def with_ollama(url):
    client = ollama.Client(host=url)

    def chat(act, **more):
        return client.chat(model="primary", messages=user(act), format=SCHEMA, **more)

    def parsed():
        assert Person.model_validate_json(chat("mend").message.content).age == 34

    def streamed():
        text = "".join(chunk.message.content or "" for chunk in chat("mend", stream=True))
        assert Person.model_validate_json(text).age == 34

    def generated():
        got = client.generate(model="primary", prompt="mend: Maria, 34", format=SCHEMA)
        assert Person.model_validate_json(got.response).age == 34

    def cut():
        assert chat("cut").done_reason == "length"

    return {
        "a document after a wrong answer": parsed,
        "the same, streamed": streamed,
        "generate": generated,
        "a truncation": cut,
        "an unknown model, 404": lambda: raised(ollama.ResponseError, lambda: client.chat(model="other", messages=user("mend")), 404),
        "no valid answer, 422": lambda: raised(ollama.ResponseError, lambda: chat("never"), 422),
        "busy, 429": lambda: raised(ollama.ResponseError, lambda: chat("busy"), 429),
        "tags": lambda: [model.model for model in client.list().models].index("primary"),
    }


def with_instructor(url):
    import instructor
    from instructor.core import InstructorRetryException

    client = openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)

    def create(mode, act, **more):
        made = instructor.from_openai(client, mode=mode)
        return made.chat.completions.create(model="primary", messages=user(act), response_model=Person, max_retries=0, **more)

    def typed(mode):
        def check():
            assert create(mode, "mend").age == 34
        return check

    def failed(act, kind):
        def check():
            try:
                found = create(instructor.Mode.TOOLS, act)
            except (openai.OpenAIError, InstructorRetryException) as error:
                # The error of the client underneath is the cause, or stands in the text.
                causes = [error, error.__cause__, getattr(error.__cause__, "__cause__", None)]
                assert any(isinstance(cause, kind) for cause in causes) or kind.__name__ in repr(error) or str(
                    getattr(kind, "status_code", "")) in str(error), repr(error)
                return
            raise AssertionError(f"got {found}")
        return check

    return {
        "tools": typed(instructor.Mode.TOOLS),
        "JSON Schema": typed(instructor.Mode.JSON_SCHEMA),
        "no valid answer, 422": failed("never", openai.UnprocessableEntityError),
        "busy, 429": failed("busy", openai.RateLimitError),
        "down, 503": failed("down", openai.InternalServerError),
    }


def with_pydantic_ai(url):
    from pydantic_ai import Agent, ModelHTTPError, NativeOutput, ToolOutput
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)

    def run(act, output, model="primary"):
        model = OpenAIChatModel(model, provider=OpenAIProvider(openai_client=client))
        # Its own retries are off: the service's are what is checked.
        return Agent(model, output_type=output, retries=0).run_sync(user(act)[0]["content"]).output

    def typed(output):
        def check():
            assert run("mend", output) == Person(name="Maria", age=34)
        return check

    return {
        "tool output": typed(ToolOutput(Person)),
        "native output": typed(NativeOutput(Person)),
        "no valid answer, 422": lambda: raised(ModelHTTPError, lambda: run("never", NativeOutput(Person)), 422),
        "an unknown model, 404": lambda: raised(ModelHTTPError, lambda: run("mend", NativeOutput(Person), "other"), 404),
        "busy, 429": lambda: raised(ModelHTTPError, lambda: run("busy", NativeOutput(Person)), 429),
        "down, 503": lambda: raised(ModelHTTPError, lambda: run("down", ToolOutput(Person)), 503),
    }


def with_langchain(url):
    from langchain_openai import ChatOpenAI

    def ask(act, method="json_schema", model="primary", **more):
        chat = ChatOpenAI(model=model, base_url=f"{url}/v1", api_key="any", max_retries=0, **more)
        return chat.with_structured_output(Person, method=method).invoke(user(act)[0]["content"])

    def typed(method, **more):
        def check():
            assert ask("mend", method, **more) == Person(name="Maria", age=34)
        return check

    return {
        "JSON Schema": typed("json_schema"),
        "function calling": typed("function_calling"),
        "the Responses API": typed("json_schema", use_responses_api=True),
        "no valid answer, 422": lambda: raised(openai.UnprocessableEntityError, lambda: ask("never"), 422),
        "an unknown model, 404": lambda: raised(openai.NotFoundError, lambda: ask("mend", model="other"), 404),
        "a truncation": lambda: raised(openai.LengthFinishReasonError, lambda: ask("cut")),
        "busy, 429": lambda: raised(openai.RateLimitError, lambda: ask("busy"), 429),
        "down, 503": lambda: raised(openai.InternalServerError, lambda: ask("down"), 503),
    }


# The checks of a client, and the package whose version is shown.
CLIENTS = {
    "openai": (with_openai, "openai"),
    "anthropic": (with_anthropic, "anthropic"),
    "ollama": (with_ollama, "ollama"),
    "instructor": (with_instructor, "instructor"),
    "pydantic-ai": (with_pydantic_ai, "pydantic-ai-slim"),
    "langchain-openai": (with_langchain, "langchain-openai"),
}


def main():
    upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "formwork.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(
                f'[providers.primary]\nkind = "openai"\nmodel = "m"\nbase_url = "http://127.0.0.1:{upstream.server_port}"\n'
                'stream = false\napi_key_env = ""\nretries = 0\n'
            )
        command = [sys.argv[1], "serve", "--listen", "127.0.0.1:0", "--config", config]
        environment = {**os.environ, "FORMWORK_CACHE": folder}
        served = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        try:
            line = served.stderr.readline()
            found = re.search(r"http://[^,\s]+", line)
            assert found, line + served.stderr.read()
            threading.Thread(target=served.stderr.read, daemon=True).start()
            return checks(found.group(0))
        finally:
            served.terminate()
            start = time.monotonic()
            served.wait(20)
            print(f"the service ended {time.monotonic() - start:.1f} s after SIGTERM with {served.returncode}")


def checks(url):
    failed = 0
    for name in sys.argv[2:]:
        if name.startswith("node="):
            script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients.mjs")
            failed += subprocess.run(["node", script, url], cwd=name.removeprefix("node="), check=False).returncode
            continue
        with_client, package = CLIENTS[name]
        version = importlib.metadata.version(package)
        for check, run in with_client(url).items():
            try:
                run()
                print(f"ok    {name} {version}: {check}", flush=True)
            except Exception as error:  # every failure of a client is a finding
                failed += 1
                print(f"FAIL  {name} {version}: {check}: {type(error).__name__}: {error}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
