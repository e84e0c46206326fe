"""Extracts by three protocols through LiteLLM's proxy, behind which `formwork serve` answers with the model in its process.

Usage: litellm.py FORMWORK. Needs the package litellm[proxy]. Prints a line for each protocol; exits with 1 if one fails.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

TEXT = "Maria Lindqvist, 34, moved to Lisbon last spring."
ROOT = pathlib.Path(__file__).parent.parent.parent
SCHEMA = ROOT / "examples" / "person.schema.json"
# LiteLLM imports for half a minute on a small machine.
PATIENCE = 180


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def until(what, check):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            if check():
                return
        except OSError:
            pass
        time.sleep(0.5)
    sys.exit(f"error: {what} did not start within {PATIENCE} s")


def get(url):
    with urllib.request.urlopen(url, timeout=5) as response:
        return response.status == 200


def extract(program, folder, arguments, variables):
    """Returns the exit code, standard output and standard error of one extraction."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    command = [program, "extract", "--schema", SCHEMA, *arguments, TEXT]
    done = subprocess.run(command, cwd=folder, env=environment | variables, capture_output=True, text=True, timeout=PATIENCE)
    return done.returncode, done.stdout, done.stderr


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    proxy = f"http://127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory() as folder:
        started = []
        try:
            serve = f"http://127.0.0.1:{free_port()}"
            log = open(pathlib.Path(folder) / "log", "w")
            run = lambda command, **more: started.append(
                subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, **more)
            )
            run([program, "serve", "--listen", serve.removeprefix("http://")])
            parameters = {"model": "openai/default", "api_base": f"{serve}/v1", "api_key": "none"}
            config = pathlib.Path(folder) / "litellm.json"
            config.write_text(json.dumps({"model_list": [{"model_name": "smollm2", "litellm_params": parameters}]}))
            start = "import sys; sys.argv[0] = 'litellm'; from litellm import run_server; run_server()"
            port = proxy.rsplit(":", 1)[1]
            options = ["--config", str(config), "--telemetry", "False", "--host", "127.0.0.1", "--port", port]
            # The proxy refuses to start without a key. It listens on loopback only.
            weak = os.environ | {"LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
            run([sys.executable, "-u", "-c", start, *options], env=weak)
            until("formwork serve", lambda: get(f"{serve}/v1/models"))
            until("LiteLLM's proxy", lambda: get(f"{proxy}/health/readiness"))
            responses = pathlib.Path(folder) / "responses.toml"
            responses.write_text(
                f'[providers.it]\nkind = "openai"\napi = "responses"\nmodel = "smollm2"\nbase_url = "{proxy}/v1"\napi_key_env = ""\n'
            )
            failed = 0
            for name, arguments, variables in [
                ("generateContent", ["-m", "gemini/smollm2"], {"GOOGLE_GEMINI_BASE_URL": proxy, "GEMINI_API_KEY": "x"}),
                ("Responses", ["--config", responses], {}),
                ("Messages", ["-m", "anthropic/smollm2"], {"ANTHROPIC_BASE_URL": proxy, "ANTHROPIC_API_KEY": "x"}),
            ]:
                begin = time.monotonic()
                code, out, err = extract(program, folder, arguments, variables)
                # The proxy passes the schema on from each of these protocols.
                is_fine = code == 0 and set(json.loads(out)) == {"name", "age", "city"}
                words = "valid" if is_fine else f"FAILED with {code}: {out}{err}"
                print(f"{name}: {words} ({time.monotonic() - begin:.0f} s)", flush=True)
                failed += not is_fine
            if failed:
                log.flush()
                print((pathlib.Path(folder) / "log").read_text()[-3000:], file=sys.stderr)
            sys.exit(failed > 0)
        finally:
            for process in started:
                process.terminate()
            for process in started:
                process.wait(timeout=30)


if __name__ == "__main__":
    main()
