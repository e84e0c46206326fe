"""llama_server.py MODEL ALIAS HOST PORT: llama.cpp's own HTTP server, which the Python package xllamacpp links in."""

import signal
import sys

import xllamacpp

model, alias, host, port = sys.argv[1:]
params = xllamacpp.CommonParams()
params.model.path = model
params.model_alias = {alias}
params.hostnames = [host]
params.port = int(port)
params.n_ctx = 4096
params.n_parallel = 1
# More threads wait for each other by spinning: on a machine that does anything else, one is many times as fast.
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
# Keeps the server: it ends with the last reference to it.
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
signal.pause()
