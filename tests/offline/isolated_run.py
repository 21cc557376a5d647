"""Run a program in its own network namespace, with nothing but a scripted model server.

`python isolated_run.py SCRIPT.json PORT PROGRAM ARGUMENT...`; exits with 77 where that is not possible.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

NOT_POSSIBLE = 77
_NEW_NETWORK, _NEW_USER = 0x40000000, 0x10000000
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1
_PARENT_DIED = 1


def main() -> None:
    script, port, *program = sys.argv[1:]
    try:
        leave_the_network()
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(NOT_POSSIBLE)
    serve(script, port)
    sys.exit(subprocess.run(program).returncode)


def leave_the_network() -> None:
    flags = _NEW_NETWORK | (0 if os.geteuid() == 0 else _NEW_USER)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), "can't create a network namespace here")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        request = fcntl.ioctl(handle, _GET_FLAGS, struct.pack("16sH22x", b"lo", 0))
        up = struct.unpack("16sH22x", request)[1] | _UP
        fcntl.ioctl(handle, _SET_FLAGS, struct.pack("16sH22x", b"lo", up))


def serve(script: str, port: str) -> None:
    """Start a model server that ends with this process."""

    def die_with_parent() -> None:
        ctypes.CDLL(None).prctl(_PARENT_DIED, signal.SIGKILL)

    server = Path(__file__).parent.parent / "model_server.py"
    command = [sys.executable, str(server), "--port", port, "--script", script]
    environ = {name: value for name, value in os.environ.items() if name != "NETWORK_LOG"}
    started = subprocess.Popen(command, stdout=subprocess.PIPE, env=environ, preexec_fn=die_with_parent)
    assert started.stdout is not None
    started.stdout.readline()


if __name__ == "__main__":
    main()
