"""Logs the hosts that this Python process tries to reach; on the path of every process of a test."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

_CALLS = (
    "socket.connect",
    "socket.sendto",
    "socket.sendmsg",
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "socket.gethostbyaddr",
)
_LOG = os.environ.get("NETWORK_LOG")


def _note(event: str, args: tuple[Any, ...]) -> None:
    if event not in _CALLS:
        return
    whom = args if event.startswith("socket.get") else args[1:]
    if not event.startswith("socket.get") and not (whom and isinstance(whom[0], tuple)):
        return  # a Unix socket
    line = json.dumps([event, [str(part) for part in (whom if event.startswith("socket.get") else whom[0])]])
    with open(str(_LOG), "a", encoding="utf-8") as log:
        log.write(line + "\n")


if _LOG:
    sys.addaudithook(_note)
