"""What ssh starts to ask for a password or about a host key: it passes the question on to Open Interpreter.

It gets the question as its argument, and the path of a socket in INTERPRETER_ASKPASS. It runs in a process of its own.
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
