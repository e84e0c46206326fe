"""Compares the settings of models in Formwork's requests with those that the vendors' own packages send.

    python3 measure/peers/settings.py

It installs the packages of PyPI into a temporary environment (or uses those of PEERS_PYTHON), sends each setting with each package
to a server on this machine, and compares the added members with `settings.json`, which a test of `crates/formwork` writes. Without
network it says so and succeeds.
"""

import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading

PACKAGES = ["openai", "anthropic", "google-genai", "ollama", "cohere", "boto3"]
HERE = os.path.dirname(os.path.abspath(__file__))

# The arguments of each package for a setting. A setting that is missing here has no argument in the package.
CHAT = {
    'effort="none"': {"reasoning_effort": "none"},
    'effort="minimal"': {"reasoning_effort": "minimal"},
    'effort="low"': {"reasoning_effort": "low"},
    'effort="xhigh"': {"reasoning_effort": "xhigh"},
    'verbosity="low"': {"verbosity": "low"},
    'service_tier="flex"': {"service_tier": "flex"},
    'stop=["END"]': {"stop": ["END"]},
    "seed=7": {"seed": 7},
    "top_p=0.9": {"top_p": 0.9},
    "frequency_penalty=0.5": {"frequency_penalty": 0.5},
    "presence_penalty=0.5": {"presence_penalty": 0.5},
    "top_logprobs=3": {"logprobs": True, "top_logprobs": 3},
    "parallel_tools=false": {"parallel_tool_calls": False},
    'prompt_cache="off"': {"prompt_cache_options": {"mode": "explicit"}},
    'metadata={"job": "a"}': {"metadata": {"job": "a"}},
    'user="u-1"': {"safety_identifier": "u-1"},
}
COMPATIBLE = {name: value for name, value in CHAT.items() if name not in ('verbosity="low"', 'prompt_cache="off"')}
# Members of vLLM and others, which the package sends in `extra_body`.
COMPATIBLE |= {"top_k=40": {"extra_body": {"top_k": 40}}, 'user="u-1"': {"user": "u-1"}}
RESPONSES = {
    'effort="none"': {"reasoning": {"effort": "none"}},
    'effort="minimal"': {"reasoning": {"effort": "minimal"}},
    'effort="low"': {"reasoning": {"effort": "low"}},
    'effort="xhigh"': {"reasoning": {"effort": "xhigh"}},
    'verbosity="low"': {"text": {"verbosity": "low"}},
    'service_tier="flex"': {"service_tier": "flex"},
    "top_p=0.9": {"top_p": 0.9},
    "top_logprobs=3": {"include": ["message.output_text.logprobs"], "top_logprobs": 3},
    "parallel_tools=false": {"parallel_tool_calls": False},
    'prompt_cache="off"': {"prompt_cache_options": {"mode": "explicit"}},
    'metadata={"job": "a"}': {"metadata": {"job": "a"}},
    'user="u-1"': {"safety_identifier": "u-1"},
}
ANTHROPIC = {
    'effort="none"': {"thinking": {"type": "disabled"}},
    'effort="low"': {"output_config": {"effort": "low"}},
    'effort="xhigh"': {"output_config": {"effort": "xhigh"}},
    "reasoning_tokens=2048": {"thinking": {"type": "enabled", "budget_tokens": 2048}},
    'stop=["END"]': {"stop_sequences": ["END"]},
    "parallel_tools=false": {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
    'user="u-1"': {"metadata": {"user_id": "u-1"}},
}
GEMINI = {
    'effort="none"': {"thinking_config": {"thinking_budget": 0}},
    'effort="minimal"': {"thinking_config": {"thinking_level": "minimal"}},
    'effort="low"': {"thinking_config": {"thinking_level": "low"}},
    "reasoning_tokens=2048": {"thinking_config": {"thinking_budget": 2048}},
    'service_tier="flex"': {"service_tier": "flex"},
    'stop=["END"]': {"stop_sequences": ["END"]},
    "seed=7": {"seed": 7},
    "top_p=0.9": {"top_p": 0.9},
    "top_k=40": {"top_k": 40},
    "frequency_penalty=0.5": {"frequency_penalty": 0.5},
    "presence_penalty=0.5": {"presence_penalty": 0.5},
    "top_logprobs=3": {"response_logprobs": True, "logprobs": 3},
}
VERTEX = {name: value for name, value in GEMINI.items() if name != 'service_tier="flex"'}
VERTEX |= {'metadata={"job": "a"}': {"labels": {"job": "a"}}}
OLLAMA = {
    'effort="none"': {"think": False},
    'effort="low"': {"think": True},
    'stop=["END"]': {"options": {"stop": ["END"]}},
    "seed=7": {"options": {"seed": 7}},
    "top_p=0.9": {"options": {"top_p": 0.9}},
    "top_k=40": {"options": {"top_k": 40}},
    "frequency_penalty=0.5": {"options": {"frequency_penalty": 0.5}},
    "presence_penalty=0.5": {"options": {"presence_penalty": 0.5}},
    "top_logprobs=3": {"logprobs": True, "top_logprobs": 3},
}
COHERE = {
    'effort="none"': {"thinking": {"type": "disabled"}},
    "reasoning_tokens=2048": {"thinking": {"type": "enabled", "token_budget": 2048}},
    'stop=["END"]': {"stop_sequences": ["END"]},
    "seed=7": {"seed": 7},
    "top_p=0.9": {"p": 0.9},
    "top_k=40": {"k": 40},
    "frequency_penalty=0.5": {"frequency_penalty": 0.5},
    "presence_penalty=0.5": {"presence_penalty": 0.5},
}
BEDROCK = {
    'effort="low"': {"outputConfig": {"effort": "low"}},
    'effort="xhigh"': {"outputConfig": {"effort": "xhigh"}},
    'service_tier="flex"': {"serviceTier": {"type": "flex"}},
    'stop=["END"]': {"inferenceConfig": {"stopSequences": ["END"]}},
    "top_p=0.9": {"inferenceConfig": {"topP": 0.9}},
    'metadata={"job": "a"}': {"requestMetadata": {"job": "a"}},
}


class Server(http.server.BaseHTTPRequestHandler):
    """Keeps the body of each request, and refuses it."""

    bodies = []

    def do_POST(self):
        length = int(self.headers.get("content-length") or 0)
        Server.bodies.append(json.loads(self.rfile.read(length) or b"null"))
        self.send_response(400)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"message": "no", "error": {"message": "no"}}')

    def log_message(self, *_):
        pass


def clients(url):
    """Returns a function for each wire that sends a request with these arguments."""
    import anthropic
    import boto3
    import botocore.config
    import cohere
    import ollama
    import openai
    from google import genai

    of_openai = openai.OpenAI(base_url=url, api_key="k", max_retries=0)
    of_anthropic = anthropic.Anthropic(base_url=url, api_key="k", max_retries=0)
    options = {"base_url": url, "retry_options": {"attempts": 1}}
    of_gemini = genai.Client(api_key="k", http_options=options)
    import google.auth.credentials

    class Credentials(google.auth.credentials.Credentials):
        def refresh(self, request):
            self.token = "t"

    of_vertex = genai.Client(vertexai=True, project="p", location="global", credentials=Credentials(), http_options=options)
    of_ollama = ollama.Client(host=url)
    of_cohere = cohere.ClientV2(base_url=url, api_key="k")
    settings = botocore.config.Config(retries={"max_attempts": 0})
    of_bedrock = boto3.client("bedrock-runtime", region_name="us-east-1", endpoint_url=url, config=settings,
                              aws_access_key_id="a", aws_secret_access_key="s")
    user = [{"role": "user", "content": "x"}]
    chat = lambda **more: of_openai.chat.completions.create(model="m", messages=user, **more)
    google = lambda client: lambda **more: client.models.generate_content(model="gemini-3.5-flash", contents="x", config=more)
    return {
        "openai/chat": (chat, CHAT),
        "openai/compatible": (chat, COMPATIBLE),
        "openai/responses": (lambda **more: of_openai.responses.create(model="m", input="x", **more), RESPONSES),
        "anthropic": (lambda **more: of_anthropic.messages.create(model="m", max_tokens=9000, messages=user, **more), ANTHROPIC),
        "gemini": (google(of_gemini), GEMINI),
        "vertex": (google(of_vertex), VERTEX),
        "ollama": (lambda **more: of_ollama.chat(model="m", messages=user, **more), OLLAMA),
        "cohere": (lambda **more: of_cohere.chat(model="m", messages=user, **more), COHERE),
        "bedrock": (lambda **more: of_bedrock.converse(modelId="m", messages=[{"role": "user", "content": [{"text": "x"}]}], **more), BEDROCK),
    }


def added(before, after):
    """Returns the members of `after` that `before` does not have."""
    out = {}
    for name, value in after.items():
        if isinstance(value, dict) and isinstance(before.get(name), dict):
            if inside := added(before[name], value):
                out[name] = inside
        elif before.get(name) != value:
            out[name] = value
    return out


def meaning(value):
    """Returns a value without differences that mean nothing: the case of enumerations, Google's second spelling of names, empty
    objects, and numbers of 32 bits."""
    if isinstance(value, dict):
        inside = {name.replace("_", "").lower(): meaning(inside) for name, inside in value.items()}
        return {name: value for name, value in inside.items() if value != {}}
    if isinstance(value, str):
        return value.lower()
    return round(value, 6) if isinstance(value, float) else value


def compare():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def sent(call, **more):
        before = len(Server.bodies)
        try:
            call(**more)
        except Exception as error:  # The server refuses every request.
            if len(Server.bodies) == before:
                return f"{type(error).__name__}: {error}"
        return Server.bodies[-1]

    with open(os.path.join(HERE, "settings.json")) as file:
        ours = json.load(file)
    rows, wrong = 0, []
    for wire, (call, cases) in clients(f"http://127.0.0.1:{server.server_port}").items():
        plain = sent(call)
        for setting in sorted(set(cases) | set(ours.get(wire, {}))):
            rows += 1
            theirs = sent(call, **cases[setting]) if setting in cases else "has no argument for it"
            theirs = meaning(added(plain, theirs)) if isinstance(theirs, dict) else theirs
            if theirs != meaning(ours.get(wire, {}).get(setting)):
                wrong.append(f"{wire} {setting}: ours {ours.get(wire, {}).get(setting)}, the package's {theirs}")
    print("\n".join(wrong))
    print(f"{rows - len(wrong)} of {rows} settings are sent as by the vendors' packages")
    return 1 if wrong else 0


def main():
    if os.environ.get("PEERS_INSIDE"):
        return compare()
    python = os.environ.get("PEERS_PYTHON")
    with tempfile.TemporaryDirectory() as folder:
        if python is None:
            python = os.path.join(folder, "bin", "python")
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            if subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES]).returncode != 0:
                print("skipped: the packages cannot be installed (is there a network?)")
                return 0
        return subprocess.run([python, os.path.abspath(__file__)], env={**os.environ, "PEERS_INSIDE": "1"}).returncode


if __name__ == "__main__":
    sys.exit(main())
