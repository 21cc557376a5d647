"""The engine's own process: llama.cpp behind OpenAI's HTTP interface on loopback.

Run as `engine_program.py FD`. One JSON line with the orders comes in on the socket FD, one goes out when the
model is loaded (`ready`) or cannot be (`failed`); the closing of the socket ends the process.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import Any


def main(fd: int) -> None:
    with socket.socket(fileno=fd) as host:
        lines = host.makefile("rwb")
        orders = json.loads(lines.readline())
        try:
            server = serve(orders)  # it stops when it is collected
            report = {"event": "ready", "address": server.listening_address}
        except (RuntimeError, ValueError, ImportError) as error:
            report = {"event": "failed", "detail": str(error)}
        lines.write(json.dumps(report).encode() + b"\n")
        lines.flush()
        lines.read()  # until the host closes its end
    os._exit(0)  # without waiting for its threads


def serve(orders: dict[str, Any]) -> Any:
    """Load the model and begin to serve it; its threads keep running."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = orders["weights"]
    params.model_alias = {orders["name"]}
    params.n_ctx = orders["context"]
    params.n_batch = 256  # tokens between two reports of progress; more is not faster on a CPU
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [orders["key"]]
    params.use_jinja = True
    params.n_parallel = 1
    params.cpuparams.n_threads = orders["threads"]
    params.cache_ram_mib = orders["cache_megabytes"]
    params.ui = False
    params.offline = True
    params.verbosity = 1
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main(int(sys.argv[1]))
