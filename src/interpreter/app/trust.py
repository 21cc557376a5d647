"""The user's choice of when code may run in a chat: after a yes to each block, or freely in a sandbox."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from interpreter.api import OpenInterpreter
from interpreter.config.homes import make_folder
from interpreter.config.setting import apply, origins, sources
from interpreter.errors import InterpreterError
from interpreter.session import SetPermissions

if TYPE_CHECKING:
    from interpreter.session.actor import Mode

IN_SANDBOX: Mode = "auto-in-sandbox"
NO_SANDBOX = "no sandbox"  # remembered where none works: the user knows, and is asked once one does
_FILE = "mode.txt"
_BY_MODE = "mode"  # as the origin of the setting `sandbox`: the mode has turned it on


def change_permissions(interpreter: OpenInterpreter, change: Callable[[], object]) -> None:
    """Change settings that say what code may do, as an action of the user: its events say what has changed."""
    if "session" in vars(interpreter):
        interpreter.session.perform(SetPermissions(interpreter.agent.actor, change=change), interpreter.user).result()
    else:
        change()


def switch_sandbox(interpreter: OpenInterpreter, kind: str) -> None:
    """Change the sandbox that code runs in from now on; an error, and no change, if there can't be one."""
    before = interpreter.sandbox

    def change() -> None:
        interpreter.sandbox = kind
        try:
            interpreter.runtimes.apply_sandbox()
        except InterpreterError:
            interpreter.sandbox = before
            raise

    change_permissions(interpreter, change)


def switch_mode(interpreter: OpenInterpreter, mode: str, source: str = "code") -> None:
    """Change the mode; `auto-in-sandbox` brings a sandbox of the workspace if there is none, for as long as it lasts.

    SandboxUnavailableError, and no change, if there can't be one.
    """
    needs_sandbox = mode == IN_SANDBOX and interpreter.sandbox == "off"
    if needs_sandbox:
        from interpreter.sandbox import containment, places, sandbox

        containment.check_available()
        places.places(sandbox.Sandbox.from_settings(interpreter, kind="workspace"), [], ())

    def change() -> None:
        apply(interpreter, {"mode": mode}, source)
        if needs_sandbox:
            apply(interpreter, {"sandbox": "workspace"}, source, _BY_MODE)
        elif mode != IN_SANDBOX and origins(interpreter)["sandbox"].endswith(f" {_BY_MODE}"):
            apply(interpreter, {"sandbox": "off"}, source)

    change_permissions(interpreter, change)


def is_given(interpreter: OpenInterpreter) -> bool:
    """Check whether flags, the environment or a profile already say when code may run."""
    given = sources(interpreter)
    return not {given["mode"], given["auto_run"], given["sandbox"]} <= {"default", "code"}


def remember(interpreter: OpenInterpreter, mode: str) -> None:
    """Remember the choice for later chats."""
    path = Path(interpreter.get_oi_dir(), _FILE)
    with suppress(OSError):  # if the folder can't be written, the choice is only not remembered
        make_folder(path.parent)
        path.write_text(f"{mode}\n", encoding="utf-8")


def recall(interpreter: OpenInterpreter) -> str:
    """Return the last choice, `ask` or `auto-in-sandbox`, or NO_SANDBOX; empty if there is none."""
    with suppress(OSError, ValueError):
        mode = Path(interpreter.get_oi_dir(), _FILE).read_text(encoding="utf-8").strip()
        return mode if mode in ("ask", IN_SANDBOX, NO_SANDBOX) else ""
    return ""
