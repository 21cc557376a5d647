"""What a block asks its sandbox for, in comments that it begins with: `# needs: host pypi.org`.

There is `host NAME`, `read PATH`, `write PATH` and `env NAME`. Whether it is given is for the user to say; what nobody
can give is told here.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from interpreter.config.homes import homes
from interpreter.sandbox.places import (
    PACKAGE,
    TRUSTED,
    Places,
    is_inside,
)
from interpreter.sandbox.proxy import is_listed, is_public
from interpreter.sandbox.sandbox import (
    LEADING_OUT,
    Sandbox,
    Widening,
    full,
    is_harmless,
)

MOST = 4  # of one block
COMMENT = re.compile(r"\s*(?:#|//|--)\s?(.*)")
NEED = re.compile(r"needs?:\s*((?:host|read|write|env)\s+\S.*)", re.IGNORECASE)
KIND = re.compile(r"(?:^|[,;]\s*(?:and\s+)?|\s+and\s+)(host|read|write|env)\s+(?=\S)", re.IGNORECASE)
HOST = re.compile(r"(?:https?://)?((?:[\w-]+\.)*[\w-]+(?::\d+)?)(?:/\S*)?", re.ASCII)
VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
APART = tuple(map(Path, ("/tmp", "/var/tmp", "/run", "/var/run", "/dev", "/proc")))  # are others inside
NEIGHBOURS = ("localhost", "host.docker.internal", "gateway.docker.internal")


def needs(code: str, workspace: str) -> list[Widening]:
    """What the first comments of a block ask for, each once."""
    found: list[Widening] = []
    for line in code.splitlines():
        comment = COMMENT.fullmatch(line)
        if comment is None and line.strip():
            break  # from here on it is code
        if comment is not None and (need := NEED.match(comment[1])):
            _, *parts = KIND.split(need[1].strip())  # a kind, what of it, a kind, ...
            for kind, text in zip(parts[::2], parts[1::2], strict=True):
                found += named(kind.lower(), text.strip(), workspace)
    return list(dict.fromkeys(found))[:MOST]


def named(kind: str, text: str, workspace: str) -> Iterator[Widening]:
    if kind in ("read", "write"):
        path = os.path.join(workspace, os.path.expanduser(text.strip("\"'`").removesuffix(":rw")))
        yield Widening(kind, str(full(path)))  # type: ignore[arg-type]
        return
    pattern = HOST if kind == "host" else VARIABLE
    for word in re.split(r"[,\s]+(?:and\s+)?", text.strip("\"'`")):
        match = pattern.fullmatch(word.strip("\"'`;"))
        if match is None:
            return  # words for the reader
        yield Widening(kind, match[1].lower() if kind == "host" else match[0])  # type: ignore[arg-type]


def has(sandbox: Sandbox, places: Places, wanted: Widening) -> bool:
    """Whether the sandbox gives this already."""
    match wanted.kind:
        case "host":
            return is_listed(*parted(wanted.value), sandbox.hosts)
        case "read":
            seen = is_inside(Path(wanted.value), (*places.readable, *places.writable))
            return seen or not (places.is_hidden(wanted.value) or is_inside(Path(wanted.value), APART))
        case "write":
            return places.is_writable(wanted.value)
        case "env":
            value = os.environ.get(wanted.value)
            return wanted.value in sandbox.env or (value is not None and is_harmless(wanted.value, value))


def obstacle(sandbox: Sandbox, places: Places, state: tuple[Path, ...], wanted: Widening) -> str:
    """Why nobody can give this; empty if the user can."""
    if sandbox.fixed:
        return "in plan mode code can only look"
    match wanted.kind:
        case "host":
            return no_host(wanted.value)
        case "env":
            return no_variable(wanted.value)
        case _:
            return no_path(sandbox, places, state, wanted)


def in_vain(sandbox: Sandbox, places: Places, state: tuple[Path, ...], wanted: Widening | None) -> bool:
    """Whether there is no use in asking for it: nobody could give it, or a rule forbids that."""
    if wanted is None or obstacle(sandbox, places, state, wanted):
        return True
    from interpreter.policy import Policy
    from interpreter.policy.widening import refusal

    return bool(refusal(Policy.load(sandbox.workspace), wanted))


def no_host(value: str) -> str:
    host, _ = parted(value)
    if host in NEIGHBOURS or host.endswith((".local", ".localhost", ".internal")) or not is_open(host):
        return f"{host} is this machine or in its network, which is never reached from a sandbox"
    return ""


def no_variable(name: str) -> str:
    if LEADING_OUT.match(name):
        return f"{name} names something that cannot be reached from a sandbox"
    return "" if name in os.environ else f"there is no variable {name}"


def no_path(sandbox: Sandbox, places: Places, state: tuple[Path, ...], wanted: Widening) -> str:
    path = Path(wanted.value)
    writes = wanted.kind == "write"
    if writes and not sandbox.writes_workspace:
        return "the sandbox is read-only; only the user can choose another one"
    if is_inside(path, state) or is_inside(path, APART[2:]):
        return f"{path} is kept from every sandbox"
    if any(Path(home).is_relative_to(path) for home in homes()):
        return f"{path} is too much: name a folder in it"
    ours = (Path(sys.prefix), PACKAGE)
    if writes and (is_inside(path, (*places.protected, *ours)) or set(path.parts) & set(TRUSTED)):
        return "what git, editors and Open Interpreter trust cannot be written"
    if is_inside(path, places.writable):
        return f"{path} is kept from every sandbox"  # what is masked in there; code could put a link in its place
    if not os.path.exists(path) and not places.is_hidden(path):
        return f"there is no {path}; a folder that is there can be asked for"
    return ""


def parted(value: str) -> tuple[str, int]:
    host, _, port = value.partition(":")
    return host, int(port) if port.isdigit() else 443


def is_open(host: str) -> bool:
    """Whether it may be in the open net; what a name leads to, the proxy finds out."""
    try:
        return is_public(host)
    except ValueError:
        return True
