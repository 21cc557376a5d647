"""macOS: the sandbox as a Seatbelt profile."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from interpreter.errors import SandboxUnavailableError
from interpreter.host import processes
from interpreter.runtimes.launch import Start
from interpreter.sandbox.places import TRUSTED, SandboxPlaces, is_inside
from interpreter.sandbox.sandbox import ENTER, ResourceLimits

PROGRAM = "/usr/bin/sandbox-exec"
BEGIN = """\
(version 1)
(deny default)
(allow process-fork process-exec)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
(allow ipc-posix-sem)
(allow pseudo-tty)
(allow file-read* file-write* file-ioctl (regex #"^/dev/(null|zero|tty|ttys[0-9]+|ptmx|fd/.*)$"))
(allow file-read-metadata)
(allow file-read*)"""


def available() -> None:
    if processes.which(PROGRAM) is None:
        raise SandboxUnavailableError(f"The sandbox needs {PROGRAM}, which is not on this system.")


def profile(
    places: SandboxPlaces,
    folders: Mapping[Path, bool],
    port: int | None,
    repositories: Iterable[Path] = (),
) -> str:
    """Write the rules; the last one that matches a path counts. `repositories` are those that `.git` files name.

    `folders` are those of the sandbox itself, and whether code can write to them.
    """
    lines = [BEGIN]
    lines += [f"(deny file-read* file-write* (subpath {quoted(path)}))" for path in places.hidden]
    lines += [f"(allow file-read* (subpath {quoted(path)}))" for path in places.readable]
    lines += [f"(allow file-read* file-write* (subpath {quoted(path)}))" for path in places.writable]
    # Match either case: file systems on macOS treat `.Git` as `.git`.
    trusted = "|".join(
        re.sub("[a-z]", lambda match: f"[{match[0]}{match[0].upper()}]", re.escape(name)) for name in TRUSTED
    )
    for path in places.writable:  # by name, whether or not it exists
        pattern = f"^{re.escape(os.path.realpath(path))}/(.*/)?({trusted})(/.*)?$"
        lines.append(f"(deny file-write* (regex {escaped(pattern)}))")
    lines += [f"(deny file-write* (subpath {quoted(path)}))" for path in (*places.protected, *repositories)]
    above = {folder for path in places.protected for folder in path.parents if is_inside(folder, places.writable)}
    lines += [f"(deny file-write-unlink (literal {quoted(folder)}))" for folder in sorted(above)]  # stops renames
    lines += [f"(deny file-read* file-write* (subpath {quoted(path)}))" for path in places.masked]
    for path, can_write in folders.items():
        lines.append(f"(allow file-read*{' file-write*' if can_write else ''} (subpath {quoted(path)}))")
    lines.append("(deny network*)")
    if port is not None:
        lines.append(f'(allow network-outbound (remote ip "localhost:{port}"))')
    return "\n".join(lines) + "\n"


def wrapped(
    limits: ResourceLimits,
    places: SandboxPlaces,
    repositories: list[Path],
    own: dict[Path, bool],
    port: int,
    start: Start,
    folder: Path | None,
) -> Start:
    """Wrap a start in a profile. The proxy listens on this machine, since macOS has no separate networks.

    `own` are its folders: the first has its home and temporary files.
    """
    argv, scratch = start.argv, next(iter(own))
    if folder is not None:
        argv = [argv[0], str(ENTER), "0", limits.as_argument(), "-", "-", *argv[1:]]
    rules = profile(places, {**({folder: True} if folder else {}), **own}, port, repositories)
    address = f"http://127.0.0.1:{port}"
    env = {
        name: address if name.lower() in ("http_proxy", "https_proxy") else value for name, value in start.env.items()
    }
    env |= {"HOME": str(scratch / "home"), "TMPDIR": str(scratch / "tmp")}
    return Start([PROGRAM, "-p", rules, *argv], env, start.cwd, start.fds)


def quoted(path: Path) -> str:
    return escaped(os.path.realpath(path))


def escaped(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
