"""The flags of the server: `--serve`, `--web` and `--server_token`."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from interpreter.app import models
from interpreter.config.homes import our_folder
from interpreter.errors import MissingLeafError, UsageError
from interpreter.frontends.flags import Parsed
from interpreter.frontends.server import application
from interpreter.frontends.server.gate import Users
from interpreter.frontends.start import configured, find_model
from interpreter.frontends.terminal.terminal import Terminal
from interpreter.frontends.terminal.tty import Tty
from interpreter.host.installation import install_hint


def serve_sessions(parsed: Parsed) -> int:
    """`--serve` and `--web`: serve sessions over HTTP until the user stops it."""
    check_extra()
    interpreter, _ = configured(parsed)
    terminal = Terminal(plain=True, tty=Tty(stdout=sys.stderr))
    if not (models.is_model_named(interpreter) or find_model(terminal, interpreter)):
        raise UsageError("There is no model yet. Name one with --model, or pick one with `interpreter --setup`.")
    return application.serve(interpreter, browser="web" in parsed.actions)


def make_token(parsed: Parsed) -> int:
    """`--server_token`: make a token and print it."""
    check_extra()
    print(Users(our_folder("data") / "server").add(parsed.actions["server_token"]))
    return 0


def check_extra() -> None:
    """Raise MissingLeafError if the packages that serve are not installed."""
    if any(find_spec(name) is None for name in ("uvicorn", "websockets")):
        raise MissingLeafError(f"The server needs extra packages: {install_hint('server')}")
