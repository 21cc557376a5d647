"""The program that ssh starts to ask for a password or about a host key: it passes the question to Open Interpreter.

The question is its argument, and INTERPRETER_ASKPASS has the path of a socket. It runs in a separate process.
"""

from __future__ import annotations

import json
import os
import socket
import sys


def main() -> int:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(os.environ["INTERPRETER_ASKPASS"])
        asked = {"prompt": sys.argv[1] if len(sys.argv) > 1 else "", "kind": os.environ.get("SSH_ASKPASS_PROMPT", "")}
        connection.sendall(json.dumps(asked).encode() + b"\n")
        answer = json.loads(connection.makefile("rb").readline() or b"null")
    if answer is None:
        return 1
    sys.stdout.write(f"{answer}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
