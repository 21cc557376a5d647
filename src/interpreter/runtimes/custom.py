"""Languages that a profile describes: a program, or an installed Jupyter kernel."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from interpreter.errors import RuntimeStartError, SettingError
from interpreter.host.installation import install_hint
from interpreter.runtimes.base import BaseLanguage
from interpreter.runtimes.program import ProgramLanguage
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
        """What Jupyter knows about the kernel; None if it is not installed."""
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
    """The class of a language that a profile describes; SettingError if something is wrong with it."""
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
    words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command or ()]
    if not words or kernel:
        raise SettingError(HELP)
    persistent = bool(described.get("persistent"))
    if persistent:
        words = [*words, *(place for place in ("{commands}", "{replies}") if place not in words)]
    elif not any("{file}" in word for word in words):
        words.append("{file}")
    given.setdefault("install", f"put `{words[0]}` on your PATH")
    program = {"programs": (words[0],), "arguments": tuple(words[1:]), "persistent": persistent}
    return type(name, (ProgramLanguage,), given | program)
