"""Counts the instructions of a request through the gateway, beside those of a bare proxy.

    python3 measure/peers/gateway_instructions.py

It builds `measure` with the profile `dist`, runs each side of `cargo evals bench gateway` below valgrind, and prints the instructions of a
request in user space, and their ratio to the bare proxy's. Unlike processor time, they do not depend on the load of the machine.
"""

import json
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PROGRAM = os.path.join(ROOT, "target", "dist", "measure")
# The first requests fill the caches and the pool of connections.
REQUESTS = (200, 600)
# What is measured, the side, and its request.
SIDES = [
    ("the bare proxy", "bare", "plain"),
    ("passed through", "ours", "plain"),
    ("with a contract", "ours", "contract"),
    ("with a contract and a ledger of runs", "ledger", "contract"),
    ("with a contract and a ledger of runs and texts", "bodies", "contract"),
]


def serve(before, *args):
    """Starts a server, and returns its process and its address."""
    server = subprocess.Popen([*before, PROGRAM, "part", "serve", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    return server, server.stdout.readline().strip()


def whole(side, request, requests, upstream):
    """Returns the instructions of a server that answers so many requests."""
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    server, address = serve(valgrind, side, f"http://{upstream}")
    load = [PROGRAM, "part", "load", address, request, "8", str(requests)]
    loaded = subprocess.run(load, check=True, stdout=subprocess.PIPE, text=True)
    if wrong := json.loads(loaded.stdout)["errors"]:
        sys.exit(f"{side}, {request}: {wrong} of {requests} requests without their answer")
    # The server ends with its input.
    _, errors = server.communicate()
    return int(re.search(r"Collected : (\d+)", errors).group(1))


def main():
    if not shutil.which("valgrind"):
        sys.exit("valgrind counts the instructions: install it")
    manifest = os.path.join(ROOT, "measure", "Cargo.toml")
    subprocess.run(["cargo", "build", "--profile", "dist", "--quiet", "--locked", "--manifest-path", manifest], check=True, cwd=ROOT)
    upstream, address = serve([], "upstream")
    bare = None
    for name, side, request in SIDES:
        few, many = (whole(side, request, requests, address) for requests in REQUESTS)
        instructions = (many - few) / (REQUESTS[1] - REQUESTS[0])
        bare = bare or instructions
        print(f"{name}: {instructions:,.0f} instructions, {instructions / bare:.2f} x")
    upstream.communicate()


main()
