"""A complete front end: it shows the events of a session, answers its questions from a thread, and needs no terminal."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from interpreter import OpenInterpreter
from interpreter.app import attachments, checkpoints, conversations, own_blocks, result_of
from interpreter.session import Answer, Question, Session


class FrontEnd:
    """Collects all events in `screen`, and answers questions with `decide`."""

    def __init__(self, interpreter: OpenInterpreter, decide: Callable[[Question], Answer]) -> None:
        self.forks, self._decide, self._open = checkpoints.Forks(interpreter), decide, ExitStack()
        self.screen: list[tuple[str, Any]] = []
        self._watch(interpreter.session)

    def _watch(self, session: Session) -> None:
        kinds = ("block", "call", "sandbox", "text", "password", "overwrite", "confirm", "choose")
        self._open.enter_context(session.questions.answerable(kinds))
        thread = threading.Thread(target=self._follow, args=[session])
        thread.start()
        self._open.callback(thread.join)
        self._open.callback(session.close)

    def _follow(self, session: Session) -> None:
        for event in session.events():
            self.screen.append((event.kind, event.data.get("content", event.data)))
            if (question := session.questions.find(event.data.get("question", ""))) is not None:
                session.answer(question.id, self._decide(question))

    def chat(self, text: str) -> None:
        current = self.forks.current
        for _ in attachments.send(current, attachments.prepare(current, text)):
            pass

    def run(self, language: str, code: str) -> str:
        return result_of(own_blocks.run_own_block(self.forks.current, language, code))

    def undo(self) -> Any:
        return result_of(checkpoints.carry_out(self.forks.current, checkpoints.plan_undo(self.forks.current), "undo"))

    def resume(self, conversation: str) -> Any:
        current = self.forks.current
        return result_of(conversations.resume(current, conversations.find_conversation(current, conversation)))

    def rerun(self) -> int:
        return result_of(conversations.Rerun(self.forks.current).events())

    def fork(self) -> None:
        self._watch(self.forks.fork().session)

    def close(self) -> None:
        self._open.close()
