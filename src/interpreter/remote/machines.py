"""The other machines of a session, from its settings, and the languages that they add.

A machine is reached over ssh, with a keeper there, or it is a Jupyter server with kernels.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.computer import KEEPERS
from interpreter.errors import SettingError
from interpreter.host.files import write_bytes
from interpreter.questions import Step
from interpreter.runtimes.base import BaseLanguage
from interpreter.session import Action, ActionContext
from interpreter.version import __version__

if TYPE_CHECKING:
    from interpreter.remote.jupyter import JupyterServer
    from interpreter.remote.machine import Machine

__all__ = [
    "Connect",
    "languages_for",
    "machine_at",
    "machines_of",
    "note_keepers",
    "noted_address",
    "take_over_keepers",
]

OWN = ""  # the name of the machine that the whole session works on


class Connect(Action):
    """Connect to another machine; ssh's prompts become questions."""

    kind = "connect"

    def __init__(self, machine: Any) -> None:
        super().__init__()
        self._machine = machine

    def describe(self) -> str:
        return f"connecting to {self._machine.name}"

    def run(self, context: ActionContext) -> Generator[Step]:
        yield from self._machine.connecting()
        self.outcome = "done"


def machine_at(address: str, name: str = "", computer: Any = None) -> Machine | JupyterServer:
    """Make the machine for an address without contacting it. Raises SettingError for an invalid address."""
    keep, ssh = (computer.remote_keep, computer.remote_ssh) if computer is not None else (3600, "ssh")
    if address.startswith("ssh://"):
        from interpreter.remote.machine import Machine
        from interpreter.remote.ssh import Ssh, SshAddress

        ssh_address = SshAddress.parse(address)
        return Machine(name or str(ssh_address), Ssh(ssh_address, ssh), ssh_address.path, keep, computer)
    if address.startswith(("jupyter+http://", "jupyter+https://")):
        from interpreter.remote.jupyter import JupyterServer

        return JupyterServer(address, name, keep, computer)
    raise SettingError(
        f"{address.partition('?')[0]} is not the address of a machine, such as ssh://user@host/folder or "
        "jupyter+https://host/?token=..."
    )


def machines_of(computer: Any) -> dict[str, Machine | JupyterServer]:
    """Make the machines that the settings `remote` and `remotes` name; the session's own comes first."""
    for name, address in (computer.remotes or {}).items():
        if not isinstance(name, str) or not re.fullmatch(r"[\w.-]+", name) or not isinstance(address, str):
            raise SettingError("`remotes` takes names and addresses, such as `gpu: ssh://user@host/folder`.")
    return {name: machine_at(address, name, computer) for name, address in _addresses(computer).items()}


def _addresses(computer: Any) -> dict[str, str]:
    return ({OWN: computer.remote} if computer.remote else {}) | (computer.remotes or {})


def note_keepers(computer: Any, session_folder: Path) -> None:
    """Note in a session's folder where its runtimes are, for a process that resumes it if this one is killed."""
    addresses, noted = _addresses(computer), {}
    for name, machine in computer.machines.items():
        if keeper := getattr(machine, "keeper", None):
            noted[name] = {"address": addresses[name], "keeper": keeper, "version": __version__}
    if noted and _noted(session_folder) != noted:
        write_bytes(session_folder / KEEPERS, json.dumps(noted).encode(), 0o600)


def take_over_keepers(computer: Any, session_folder: Path) -> None:
    """Let the machines of a resumed session look for runtimes that a killed process left there."""
    addresses = _addresses(computer)
    for name, noted in _noted(session_folder).items():
        if name in addresses and (addresses[name], __version__) == (noted["address"], noted["version"]):
            computer.machines[name].take_over(noted["keeper"])


def noted_address(session_folder: Path) -> str | None:
    """Return the address of the machine that a saved session worked on; None if it was this one."""
    return _noted(session_folder).get(OWN, {}).get("address")


def _noted(session_folder: Path) -> dict[str, dict[str, str]]:
    try:
        return json.loads((session_folder / KEEPERS).read_bytes())  # type: ignore[no-any-return]
    except (OSError, ValueError):
        return {}


def languages_for(
    machines: dict[str, Machine | JupyterServer], here: list[type[BaseLanguage]]
) -> list[type[BaseLanguage]]:
    """List the languages of a session: those of its machine, and those of each named one, such as `python@gpu`."""
    own = machines.get(OWN)
    languages = own.languages(here, True) if own is not None else list(here)
    return languages + [each for name, machine in machines.items() if name for each in machine.languages(here, False)]
