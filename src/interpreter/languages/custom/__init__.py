"""Languages that a profile describes: a program, or an installed Jupyter kernel."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from interpreter.errors import RuntimeStartError, SettingError
from interpreter.host.installation import install_hint
from interpreter.languages.program import ProgramLanguage
from interpreter.runtimes.base import BaseLanguage
from interpreter.runtimes.protocol import Frame
from interpreter.runtimes.sharing import KERNEL_FORMS, Form

TEXTS = ("name", "extension", "comment", "lexer", "install", "kernel", "system_message")
KNOWN = {*TEXTS, "command", "aliases", "persistent"}
HELP = (
    "A language takes a name, and a command such as `lua {file}` or the name of a Jupyter kernel; also extension, "
    "aliases, comment, lexer, install, system_message and persistent."
)


class KernelLanguage(ProgramLanguage):
    """A Jupyter kernel: rich output, input and interrupts, in a process that keeps its variables."""

    worker = Path(__file__).with_name("kernel.py")
    kernel = ""
    install = "interpreter --install jupyter, and the kernel itself"

    @property
    def shared_form(self) -> Form:  # type: ignore[override]
        spec = self._spec()
        return KERNEL_FORMS.get(spec.language.lower(), "none") if spec is not None else "none"

    def version(self) -> str | None:
        return "" if self._spec() is not None else None

    def installed(self) -> str | None:
        return f"Jupyter kernel {self.kernel}" if self.version() is not None else None

    def _spec(self) -> Any:
        """Return Jupyter's specification of the kernel; None if it is not installed."""
        if not find_spec("jupyter_client"):
            return None
        from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

        try:
            return KernelSpecManager().get_kernel_spec(self.kernel)
        except NoSuchKernel:
            return None

    def config(self) -> Frame:
        if not find_spec("jupyter_client"):
            raise RuntimeStartError(
                self.name, f"jupyter_client is not installed. To install it: {install_hint('jupyter')}"
            )
        if self._spec() is None:
            raise RuntimeStartError(self.name, f"there is no Jupyter kernel {self.kernel}: `jupyter kernelspec list`")
        return {"kernel": self.kernel}


def custom_language(described: Any) -> type[BaseLanguage]:
    """Make the class of a language that a profile describes. Raises SettingError if the description is wrong."""
    if (
        not isinstance(described, Mapping)
        or not described.get("name")
        or described.keys() - KNOWN
        or any(not isinstance(described.get(key, ""), str) for key in TEXTS)
    ):
        raise SettingError(HELP)
    name, kernel, command = described["name"], described.get("kernel"), described.get("command")
    given = {key: described[key] for key in ("comment", "lexer", "install", "system_message") if key in described}
    aliases = described.get("aliases", ())
    given |= {"name": name, "aliases": (aliases,) if isinstance(aliases, str) else tuple(aliases)}
    given["file_extension"] = described.get("extension")
    if kernel and not command:
        return type(name, (KernelLanguage,), {**given, "kernel": kernel})
    command_line = shlex.split(command) if isinstance(command, str) else [str(argument) for argument in command or ()]
    if not command_line or kernel:
        raise SettingError(HELP)
    persistent = bool(described.get("persistent"))
    if persistent:
        command_line = [*command_line, *(place for place in ("{commands}", "{replies}") if place not in command_line)]
    elif not any("{file}" in argument for argument in command_line):
        command_line.append("{file}")
    given.setdefault("install", f"put `{command_line[0]}` on your PATH")
    program = {"programs": (command_line[0],), "arguments": tuple(command_line[1:]), "persistent": persistent}
    return type(name, (ProgramLanguage,), given | program)
