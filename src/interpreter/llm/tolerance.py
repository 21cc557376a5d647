"""Malformed calls that models write in place of a real one, mended while they stream."""

from __future__ import annotations

import re
from typing import Any

from interpreter.llm.tool_call import CallArguments, begins_call
from interpreter.messages import Chunk

WRAPPER = "functions.execute("
ECHO = "executeexecute"
_ECHO_BEGUN = tuple(ECHO[:length] for length in range(len(ECHO), 0, -1))
_STRAY_TICK = "`\n"
_BLANK_LINES = re.compile(r"\s*\n")


def unwrapped(text: str) -> tuple[str, str] | None:
    """The language and code of a call that was written out as text: these two keys and nothing else."""
    text = text.strip()
    if text.startswith(WRAPPER):
        text = text.removeprefix(WRAPPER).rstrip(";").rstrip().removesuffix(")").strip()
    if not text.startswith("{") or not text.endswith("}"):
        return None
    call = CallArguments()
    chunks = call.feed(text) + call.finish()
    if not call.complete or sorted(call.keys) != ["code", "language"]:
        return None
    code = "".join(chunk["content"] for chunk in chunks if "content" in chunk)
    return chunks[-1]["format"], code


def suspicious(beginning: str) -> bool | None:
    """Whether a text that begins like this may be a call written out; None if it is too short to tell."""
    beginning = beginning.lstrip()
    if beginning.startswith(WRAPPER):
        return True
    if WRAPPER.startswith(beginning):
        return None
    return begins_call(beginning)


class Mender:
    """Passes chunks on and mends each message and block; holds back only beginnings that are suspicious.

    It also drops messages that are blank, and blank lines at the beginning of the others.
    """

    def __init__(self) -> None:
        self.unwrapped = False  # a call was written out as text
        self._open = ""  # the type of the message, block or call that is open
        self._language = ""
        self._call: str | None = None  # the id of the call that the block is
        self._beginning = _Beginning()
        self._tail = ""  # the end of the code so far, if it may be the echo
        self._passed = False  # something of it was passed on
        self._out: list[Chunk] = []

    def feed(self, chunks: list[Chunk]) -> list[Chunk]:
        """The chunks that are certain by now."""
        for chunk in chunks:
            self._take(chunk)
        out, self._out = self._out, []
        return out

    def finish(self) -> list[Chunk]:
        """What was held back; a block that is still open stays open."""
        if self._open == "message":
            self._end_message()
        elif self._open == "code":
            self._settle_code()
        out, self._out = self._out, []
        return out

    def _take(self, chunk: Chunk) -> None:
        if chunk["type"] == "reasoning":
            self._out.append(chunk)
            return
        if chunk["type"] != self._open:
            self._begin(chunk)
        if self._open == "message":
            self._message(chunk)
        elif self._open == "tool_call":
            self._out.append(chunk)
            self._open = "" if chunk.get("end") else self._open
        elif chunk.get("end"):
            self._end_code()
        else:
            self._code(chunk["content"])

    def _begin(self, chunk: Chunk) -> None:
        if self._open == "message":
            self._end_message()
        self._open, self._language, self._call = chunk["type"], chunk.get("format", ""), chunk.get("call")
        self._beginning, self._tail, self._passed = _Beginning(), "", False

    def _message(self, chunk: Chunk) -> None:
        if self._beginning.is_past:
            self._out.append(chunk)
        else:
            self._say(self._beginning.add(chunk["content"]))

    def _say(self, text: str) -> None:
        blank = _BLANK_LINES.match(text)
        text = text[blank.end() :] if blank else text
        if text.strip():
            self._out.append({"type": "message", "content": text})

    def _end_message(self) -> None:
        text = self._beginning.rest()
        call = unwrapped(text)
        if call is None:
            self._say(text)
        else:
            self.unwrapped = True
            self._out.append({"type": "code", "format": call[0], "content": call[1]})
            self._out.append({"type": "code", "format": call[0], "end": True})
        self._open = ""

    def _code(self, code: str) -> None:
        if not self._beginning.is_past:
            code = self._beginning.add(code, may_have_tick=True)
        code = self._tail + code
        echo = len(code) - len(_without_echo(code))
        self._run(code[: len(code) - echo])
        self._tail = code[len(code) - echo :]

    def _settle_code(self) -> None:
        code = (self._tail + self._beginning.rest()).removesuffix(ECHO)
        call = unwrapped(code) if not self._passed else None
        if call is not None:
            self._language, code = call
        self._run(code)
        self._tail = ""

    def _end_code(self) -> None:
        self._settle_code()
        if not self._passed:
            self._out.append(self._chunk(content=""))
        self._out.append(self._chunk(end=True))
        self._open = ""

    def _run(self, code: str) -> None:
        if code:
            self._passed = True
            self._out.append(self._chunk(content=code))

    def _chunk(self, **what: Any) -> Chunk:
        chunk: Chunk = {"type": "code", "format": self._language, **what}  # type: ignore[typeddict-item]
        if self._call is not None:
            chunk["call"] = self._call
        return chunk


class _Beginning:
    """The beginning of a text, held back as long as it is suspicious; that may be to its end."""

    def __init__(self) -> None:
        self.is_past = False
        self._parts: list[str] = []
        self._is_suspicious = False

    def add(self, text: str, may_have_tick: bool = False) -> str:
        """What is no longer held back: nothing, or all so far."""
        self._parts.append(text)
        if self._is_suspicious:
            return ""
        whole = "".join(self._parts)
        if may_have_tick:
            if whole == _STRAY_TICK[0]:
                return ""
            whole = whole.removeprefix(_STRAY_TICK)
        verdict = suspicious(whole)
        self._is_suspicious = verdict is True
        self.is_past = verdict is False
        return self.rest().removeprefix(_STRAY_TICK if may_have_tick else "") if self.is_past else ""

    def rest(self) -> str:
        """All that is still held back."""
        text, self._parts = "".join(self._parts), []
        return text


def _without_echo(code: str) -> str:
    """The code without an end that may be the beginning of the echo."""
    if not code.endswith(_ECHO_BEGUN):
        return code
    begun = next(begun for begun in _ECHO_BEGUN if code.endswith(begun))
    return code.removesuffix(begun)
