"""LiteLLM's proxy as a side of `cargo evals bench gateway`: prints its address, then what it has used for each line of its input.

Usage: litellm_proxy.py URL, where URL is the server behind it. Needs the package litellm[proxy]. Ends with its input.
"""

import json
import os
import pathlib
import resource
import socket
import sys
import tempfile
import threading
import time
import urllib.request


def used():
    """Returns the CPU time in microseconds, of child processes as well, and the memory in bytes."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    size = lambda name: next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
    cpu = sum(one.ru_utime + one.ru_stime for one in both) * 1e6
    return {"cpu": cpu, "resident": size("VmRSS:"), "peak": size("VmHWM:")}


def talk(address, output, folder):
    """Prints the address when the proxy is ready and has read its configuration, and answers each line of the input."""
    end = time.monotonic() + 120
    while True:
        try:
            urllib.request.urlopen(f"http://{address}/health/readiness", timeout=5).read()
            break
        except OSError:
            if time.monotonic() > end:
                print("LiteLLM's proxy was not ready within 120 s", file=sys.stderr)
                os._exit(1)
            time.sleep(0.2)
    folder.cleanup()
    print(address, file=output, flush=True)
    for _ in sys.stdin:
        print(json.dumps(used()), file=output, flush=True)
    os._exit(0)


def main():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # The proxy prints to the standard output, which belongs to the bench.
    output = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    parameters = {"model": "openai/m-1", "api_base": sys.argv[1], "api_key": "none"}
    folder = tempfile.TemporaryDirectory()
    config = pathlib.Path(folder.name) / "litellm.json"
    config.write_text(json.dumps({"model_list": [{"model_name": "primary", "litellm_params": parameters}]}))
    # The proxy refuses to start without a key. It listens on loopback only.
    os.environ["LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"] = "true"
    # Its list of prices is in the package, and it says nothing but errors.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["LITELLM_LOG"] = "ERROR"
    options = ["--config", str(config), "--telemetry", "False", "--host", "127.0.0.1", "--port", str(port)]
    sys.argv = ["litellm", *options]
    threading.Thread(target=talk, args=(f"127.0.0.1:{port}", output, folder), daemon=True).start()
    from litellm import run_server

    run_server()


if __name__ == "__main__":
    main()
