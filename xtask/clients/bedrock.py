"""Runs `formwork extract` against a Bedrock of this machine that verifies signatures with botocore.

    python bedrock.py PROGRAM

PROGRAM is `formwork` with the feature `aws`. The server computes the signature of each request (AWS Signature Version 4) with
botocore, from the headers that the request signs, and answers 403 if it differs. Its streams are frames that botocore's decoder has read.
"""

import base64
import binascii
import hashlib
import http.server
import json
import os
import struct
import subprocess
import sys
import tempfile
import threading
import urllib.parse

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.eventstream import EventStreamBuffer

KEY, SECRET, TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "IQoJb3JpZ2luX2VjEXAMPLE//token=="
MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
ANSWER = {"name": "Maria", "age": 34}
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
          "required": ["name", "age"], "additionalProperties": False}


def signature(method, url, headers, body):
    """Returns the authorization that botocore computes for a request, from the headers that it signs."""
    parts = dict(part.strip().split("=", 1) for part in headers["authorization"].split(" ", 1)[1].split(","))
    key, _, region, service, _ = parts["Credential"].split("/")
    signed = {name: headers[name] for name in parts["SignedHeaders"].split(";")}
    request = AWSRequest(method=method, url=url, data=body, headers=signed)
    request.context["timestamp"] = headers["x-amz-date"]
    auth = SigV4Auth(Credentials(KEY, SECRET, headers.get("x-amz-security-token")), service, region)
    text = auth.string_to_sign(request, auth.canonical_request(request))
    return key == KEY and service == "bedrock", auth.signature(text, request) == parts["Signature"], signed


def frame(kind, payload):
    """Returns a message of `application/vnd.amazon.eventstream`."""
    headers = b""
    for name, value in ((":message-type", "event"), (":event-type", kind), (":content-type", "application/json")):
        headers += struct.pack("!B", len(name)) + name.encode() + b"\x07" + struct.pack("!H", len(value)) + value.encode()
    body = json.dumps(payload).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(body), len(headers))
    message = prelude + struct.pack("!I", binascii.crc32(prelude)) + headers + body
    return message + struct.pack("!I", binascii.crc32(message))


def answer(request, is_stream):
    text = json.dumps(ANSWER)
    is_tool = "toolChoice" in request.get("toolConfig", {})
    usage = {"inputTokens": 31, "outputTokens": 9, "totalTokens": 40}
    reason = "tool_use" if is_tool else "end_turn"
    name = request["toolConfig"]["toolChoice"]["tool"]["name"] if is_tool else None
    if not is_stream:
        block = {"toolUse": {"toolUseId": "t1", "name": name, "input": ANSWER}} if is_tool else {"text": text}
        message = {"role": "assistant", "content": [block]}
        return "application/json", json.dumps({"output": {"message": message}, "stopReason": reason, "usage": usage}).encode()
    events = [("messageStart", {"role": "assistant"})]
    if is_tool:
        events.append(("contentBlockStart", {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "t1", "name": name}}}))
    for at in range(0, len(text), 5):
        piece = text[at:at + 5]
        delta = {"toolUse": {"input": piece}} if is_tool else {"text": piece}
        events.append(("contentBlockDelta", {"contentBlockIndex": 0, "delta": delta}))
    events += [("contentBlockStop", {"contentBlockIndex": 0}), ("messageStop", {"stopReason": reason}), ("metadata", {"usage": usage})]
    body = b"".join(frame(kind, payload) for kind, payload in events)
    decoder = EventStreamBuffer()
    decoder.add_data(body)
    assert [event.headers[":event-type"] for event in decoder] == [kind for kind, _ in events]
    return "application/vnd.amazon.eventstream", body


class Server(http.server.BaseHTTPRequestHandler):
    seen = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        url = f"http://{headers['host']}{self.path}"
        try:
            is_known, is_right, signed = signature("POST", url, headers, body)
            hashed = headers.get("x-amz-content-sha256", hashlib.sha256(body).hexdigest())
            is_right = is_right and is_known and hashed == hashlib.sha256(body).hexdigest()
        except KeyError as error:
            is_right, signed = False, {"missing": str(error)}
        self.seen.append((is_right, sorted(signed), urllib.parse.unquote(self.path)))
        status, (kind, out) = 200, answer(json.loads(body), self.path.endswith("converse-stream"))
        if not is_right:
            message = "The request signature we calculated does not match the signature you provided."
            status, kind, out = 403, "application/json", json.dumps({"message": message}).encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(out)))
        self.end_headers()
        self.wfile.write(out)

    def log_message(self, *_):
        pass


def main():
    program = sys.argv[1]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        files = {name: os.path.join(folder, name) for name in ("formwork.toml", "schema.json", "credentials", "config")}
        with open(files["schema.json"], "w") as file:
            json.dump(SCHEMA, file)
        with open(files["credentials"], "w") as file:
            file.write(f"[team]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n")
        with open(files["config"], "w") as file:
            file.write("[profile team]\nregion = eu-west-1\n")
        own = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
        wrong = {**own, "AWS_SECRET_ACCESS_KEY": base64.b64encode(b"another secret").decode()}
        profile = {"AWS_SHARED_CREDENTIALS_FILE": files["credentials"], "AWS_CONFIG_FILE": files["config"]}
        for name, environment, more, is_right in [
            ("keys, whole", own, "stream = false", True),
            ("keys, streamed", own, "", True),
            ("session token", {**own, "AWS_SESSION_TOKEN": TOKEN}, "", True),
            ("profile", profile, 'profile = "team"', True),
            ("forced tool, whole", own, 'mode = "tool"\nstream = false', True),
            ("forced tool, streamed", own, 'mode = "tool"', True),
            ("another secret", wrong, "", False),
        ]:
            with open(files["formwork.toml"], "w") as file:
                file.write(f'[providers.b]\nkind = "bedrock"\ncredentials = "aws"\nregion = "eu-west-1"\nmodel = "{MODEL}"\n'
                           f'base_url = "http://127.0.0.1:{server.server_address[1]}"\n{more}\n')
            Server.seen.clear()
            environment = {"PATH": os.environ["PATH"], "HOME": folder, "FORMWORK_OBSERVATIONS": "", **environment}
            command = [program, "extract", "--config", files["formwork.toml"], "--schema", files["schema.json"], "Maria is 34."]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
            if is_right:
                ok = done.returncode == 0 and json.loads(done.stdout or "null") == ANSWER and all(seen[0] for seen in Server.seen)
            else:
                ok = done.returncode == 3 and "signature" in done.stderr and not any(seen[0] for seen in Server.seen)
            ok = ok and len(Server.seen) >= 1 and MODEL in Server.seen[0][2]
            ok = ok and ("AWS_SESSION_TOKEN" not in environment or "x-amz-security-token" in Server.seen[0][1])
            print(f"{'ok' if ok else 'FAILED'}: {name}: exit code {done.returncode}, signed: {Server.seen and Server.seen[0][1]}")
            if not ok:
                failed += 1
                print(done.stdout, done.stderr, Server.seen)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
