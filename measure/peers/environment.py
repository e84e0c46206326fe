"""The environment with the packages of PyPI that a script of this folder needs."""

import os
import subprocess
import sys
import tempfile


def run(script, packages, work):
    """Calls `work` with the arguments of the command, in a temporary environment with the packages, or in that of PEERS_PYTHON."""
    if os.environ.get("PEERS_INSIDE"):
        return work(*sys.argv[1:])
    python = os.environ.get("PEERS_PYTHON")
    with tempfile.TemporaryDirectory() as folder:
        if python is None:
            python = os.path.join(folder, "bin", "python")
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            if subprocess.run([python, "-m", "pip", "install", "-q", *packages]).returncode != 0:
                print("the packages cannot be installed (is there a network?)", file=sys.stderr)
                return 1
        arguments = [python, os.path.abspath(script), *sys.argv[1:]]
        return subprocess.run(arguments, env={**os.environ, "PEERS_INSIDE": "1"}).returncode
