"""Questions to the terminal itself. Its answers come among the keys: what is typed meanwhile is given back."""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interpreter.frontends.terminal.tty import Tty

KITTY_GRAPHICS = "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\"
CELL_SIZE = "\x1b[16t"
COLOR_REGISTERS = "\x1b[?1;1;0S"
BACKGROUND = "\x1b]11;?\x1b\\"
_ATTRIBUTES = "\x1b[c"  # every terminal answers this, and answers in order: it ends the others' time

NEAR, FAR = 0.25, 1.5  # seconds that a terminal has, here and at the other end of a line
_MUTE = ("linux", "vt", "cons25", "eterm", "sun", "screen")
_ANSWER = re.compile(
    rb"\x1b_G[^\x1b]*\x1b\\"  # kitty graphics
    rb"|\x1b\[\?[0-9;]*[cS]"  # device attributes; colour registers
    rb"|\x1b\[[468];\d+;\d+t"  # sizes
    rb"|\x1b\]1[01];[^\x07\x1b]*(?:\x07|\x1b\\)"  # colours
)
_LAST = re.compile(rb"\x1b\[\?[0-9;]*c")
_BEGUN = re.compile(rb"\x1b(?:_G|\[\?[0-9;]|\]1[01];)[^\x07\x1b]*\x1b?\Z")


def answers_questions(environ: Mapping[str, str]) -> bool:
    """Whether the terminal is of a kind that may be asked."""
    return bool(environ.get("TMUX")) or not environ.get("TERM", "").startswith(_MUTE)


def time_limit(environ: Mapping[str, str]) -> float:
    return FAR if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY") else NEAR


def interview(tty: Tty, questions: str, limit: float) -> tuple[list[bytes], bytes]:
    """The terminal's answers, none if it is mute, and the keys that were typed; keys must come one by one."""
    # What a terminal might show of a question that it does not know is wiped out again.
    tty.write(f"\x1b7{questions}\x1b8\x1b[K{_ATTRIBUTES}")
    data, end = b"", time.monotonic() + limit
    while not _LAST.search(data) and (left := end - time.monotonic()) > 0:
        if not select.select([tty.stdin], [], [], left)[0]:
            break
        read = os.read(tty.stdin.fileno(), 4096)
        if not read:
            break
        data += read
    return _ANSWER.findall(data), _BEGUN.sub(b"", _ANSWER.sub(b"", data))
