"""Checks an answer for parts of the request that it leaves out, and for claims that nothing supports."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from interpreter.agent.grounding import FILE_NAME, Source, ungrounded
from interpreter.agent.small_models import asks_for_answer, asks_for_chart, missing_content, requested_files, stamp_of
from interpreter.errors import InterpreterError
from interpreter.host import files
from interpreter.llm.file_preview import beginning, peek

if TYPE_CHECKING:
    from interpreter.agent.agent import Agent


_SHOWN = (("computer", "image"), ("computer", "code"))  # figures, and pages such as those of plotly
_PICTURES = (".png", ".jpg", ".jpeg", ".svg", ".pdf", ".gif", ".webp", ".html", ".xlsx", ".docx")


class AnswerCheck:
    """Compares a turn with the request. It begins before the model is asked, to see which files change."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.folder = agent.computer.context.cwd
        self.written: set[str] = set()  # paths in the workspace that blocks wrote
        self._requested: dict[str, tuple[int, int] | None] = {}  # files, with their state at the beginning
        if agent.llm.profile.reviews_answers and not agent.computer.context.elsewhere:
            self._requested = requested_files(self.request, self.folder)

    def shortcomings(self, answers: Sequence[str], blocks: int, is_over: bool) -> Iterator[tuple[str, list[str], str]]:
        """Yield the parts of the request that the turn left out, and the claims of the answer that nothing supports."""
        now = {name: stamp_of(name, self.folder) for name in self._requested}
        unmet = [f"There is no {name}." for name, stamp in now.items() if stamp is None]
        unmet += [f"{name} has not changed." for name, stamp in now.items() if stamp and stamp == self._requested[name]]
        steps = self._agent.messages[self._agent.last_messages_count :]
        shown = any(message["role"] == "computer" and str(message.get("content", "")).strip() for message in steps)
        has_acted = self._agent.llm.profile.reviews_answers and blocks > 0
        if has_acted and not (shown or self.written or unmet) and asks_for_answer(self.request):
            unmet.append("The code printed nothing, so the question has no answer.")
        has_picture = any((m["role"], m["type"]) in _SHOWN for m in steps) or any(
            path.lower().endswith(_PICTURES) for path in self.written
        )
        if has_acted and not (has_picture or unmet) and asks_for_chart(self.request):
            unmet.append("No chart was drawn.")
        # The model has read about the content after the block; at the end, only the user still needs to know.
        written = [{"path": path, "what": "changed"} for path in self.written if has_acted and is_over]
        unmet += filter(None, [missing_content(self.request, written, str(self._agent.settings.workspace))])
        yield "result", unmet, " ".join(unmet)
        missing = self._ungrounded(answers)
        named = " and ".join(filter(None, [", ".join(missing[:-1]), *missing[-1:]]))
        yield "answer", missing, f"{named} {'are' if missing[1:] else 'is'} not in any output."

    def _ungrounded(self, answers: Sequence[str]) -> list[str]:
        """List the numbers, dates and files in the answer that occur in no output, file or message."""
        agent = self._agent
        turn = agent.messages[max(0, agent.last_messages_count - 1) :]
        answer = "\n".join(answers)[-20_000:]  # more would take too long
        has_read = any(m["type"] in ("code", "tool_call", "file") for m in turn) or (
            agent.llm.profile.reviews_answers and any(map(self._exists, FILE_NAME.findall(self.request)))
        )
        # A picture that the model has seen may say anything.
        has_seen = agent.is_observed or any((m["role"], m["type"]) == ("user", "image") for m in agent.messages)
        if not agent.settings.check_answers or has_seen or not has_read:
            return []
        return ungrounded(answer, self._sources(), self._exists)

    def _sources(self) -> Iterator[Source]:
        """Yield what an answer may draw on, the newest first; files only if that is not enough."""
        paths = [
            *(str(Path(self._agent.settings.workspace, path)) for path in self.written),
            *FILE_NAME.findall(self.request),
        ]
        for message in reversed(self._agent.messages):
            by_model = message["role"] == "assistant"
            if message["type"] != "image" and not (by_model and message["type"] == "message"):
                yield Source(f"{message.get('content')}\n{message.get('note', '')}", "code" if by_model else "text")
            paths.append(message.get("truncated", ""))
        if not self._agent.computer.context.elsewhere:
            yield Source(peek(self.request, self.folder))
            for path in filter(None, dict.fromkeys(paths)):
                with contextlib.suppress(OSError, ValueError):
                    yield Source(files.read_bytes(Path(self.folder, path), 1_000_000).decode(errors="ignore"), "file")

    def _exists(self, name: str) -> bool:
        # Files on another machine are not looked up.
        return bool(self._agent.computer.context.elsewhere) or any(
            stamp_of(name, str(folder)) for folder in (self.folder, self._agent.settings.workspace)
        )

    def tables(self) -> str:
        """Describe the columns of the live tables, or else how the files begin that the request names."""
        from interpreter.runtimes.state import TableWindow

        tables = []
        with contextlib.suppress(InterpreterError):
            for variable in self._agent.computer.variables().get("Python", ()):
                types = variable.type == "DataFrame" and self._agent.computer.look("python", f"{variable.name}.dtypes")
                if isinstance(types, TableWindow):
                    columns = ", ".join(map("{} ({})".format, types.index, types.cells[0]))
                    tables.append(f"{variable.name} has the columns {columns}.")
        return "\n".join(
            tables or (beginning(name, Path(self.folder, name)) for name in FILE_NAME.findall(self.request))
        )

    @property
    def request(self) -> str:
        """Return the user's words that this turn answers."""
        said = (m for m in reversed(self._agent.messages) if m["role"] == "user" and m["type"] == "message")
        return next((str(message["content"]) for message in said), "")
