"""Runs examples/engines/daft_letters.py against a simulated model.

Usage: daft_rows.py FORMWORK. Needs the package daft. Prints one line; exits with 1 if a letter has no person or another one's.
"""

import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).parent.parent.parent


class Model(http.server.BaseHTTPRequestHandler):
    """Answers every request for a completion with a person who has the number of words of the letter as the age."""

    protocol_version = "HTTP/1.1"
    calls = 0

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        Model.calls += 1
        text = request["messages"][-1]["content"]
        person = json.dumps({"name": "Ann", "age": len(text.split()), "city": "Bergen"})
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": person}}
        usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
        body = json.dumps({"choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    letters = [json.loads(line) for line in (ROOT / "examples" / "letters.jsonl").read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "formwork.toml"
        config.write_text(
            f'[providers.p]\nkind = "llama-server"\nmodel = "m"\nstream = false\nbase_url = "http://127.0.0.1:{server.server_port}/v1"\n'
        )
        script = ROOT / "examples" / "engines" / "daft_letters.py"
        environment = os.environ | {"FORMWORK": program, "FORMWORK_OBSERVATIONS": "", "DAFT_PROGRESS_BAR": "0"}
        command = [sys.executable, str(script), "--config", str(config)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    found = {row["id"]: row["person"] and row["person"]["age"] for row in rows}
    expected = {letter["id"]: len(letter["input"].split()) for letter in letters}
    if done.returncode != 0 or found != expected:
        sys.exit(f"error: exit code {done.returncode}, {len(found)} rows, {found} instead of {expected}\n{done.stderr}")
    print(f"daft: {len(rows)} letters, {Model.calls} calls, each letter with its own answer")


main()
