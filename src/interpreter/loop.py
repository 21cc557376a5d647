"""One turn: ask the model, approve the block, run it, record it, ask again."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from interpreter.aftermath import UNDONE, aftermath, is_undone
from interpreter.blocks import BlockGuard, PendingBlock
from interpreter.computer_api.computer import unknown_language
from interpreter.consent import NOBODY_THERE, Consent, decision, told_findings
from interpreter.errors import InterpreterError, LimitReachedError, RepeatingReplyError
from interpreter.messages import Chunk, Fold, Framer, Message
from interpreter.patience import Patience, failure_of, without_failures
from interpreter.reply import Reply
from interpreter.sandbox_words import news
from interpreter.system_message import system_message

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter
    from interpreter.os_mode import Control

PROSE_LANGUAGES = frozenset({"text", "markdown", "plaintext"})
DECLINED = "I have declined to run this code."


class Turn:
    """What happens between the user's message and the moment they are asked again."""

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self.interpreter = interpreter
        profile = interpreter.llm.profile
        self.guard = BlockGuard(interpreter.max_blocks, profile.same_results)
        self.patience = Patience(profile.same_failures)
        self.consent = Consent(interpreter)
        self.over = False
        self._requests = 0
        self._changed: dict[str, Any] | None = None  # by the block that ran last
        self._changed_any = False  # by any block of the turn
        self._framer = Framer()
        self._fold = Fold(lambda: interpreter.messages, interpreter.max_output)
        self._journal = interpreter.journal
        self._control = control_of(interpreter) if interpreter.os else None

    def run(self) -> Generator[Chunk]:
        """Every chunk of the turn, recorded before it is yielded."""
        try:
            self.interpreter.timeline.tell_model()
            self._journal.begin_turn(self._fold)
            self.interpreter.timeline.begin_turn()
            with closing(self._converse()) as chunks:
                for chunk in chunks:
                    yield from self._emit(chunk)
            yield from self._close_group()
            yield from self._control.farewell() if self._control is not None else ()
        except (KeyboardInterrupt, InterpreterError):
            yield from self._close_group()
            raise
        finally:
            self._fold.close()
            self._journal.end_turn()
            self.interpreter.timeline.end_turn()
            self.interpreter.pending = None
            if self._control is not None:
                self._control.end()

    def _emit(self, chunk: Chunk) -> Generator[Chunk]:
        for framed in self._framer.frame(chunk):
            self._fold.add(framed)
            self._journal.add(framed)
            yield framed
        if self._journal.notice is not None:
            yield self._journal.take_notice()

    def _close_group(self) -> Generator[Chunk]:
        for flag in self._framer.close():
            self._fold.add(flag)
            self._journal.add(flag)
            yield flag

    # -- the walk ------------------------------------------------------------------------------------------------

    def _converse(self) -> Generator[Chunk]:
        """Ask, and as long as blocks ran, ask again."""
        prodding = False
        yield from self._control.begin() if self._control is not None else ()
        while not self.over:
            self._count_request()
            count = self.guard.blocks
            try:
                prose_only = yield from self._ask(prodding)
            except RepeatingReplyError as error:
                self.patience.repeated(error)
                yield {"role": "assistant", "type": "message", "end": True}
                continue
            prodding = False
            if not (self.over or self.guard.blocks > count or (prose_only and self.guard.first_prose_block())):
                if not self._wants_more():
                    return
                prodding = True
                self.guard.count()
                yield {"role": "assistant", "type": "message", "content": "\n\n"}
            yield {"role": "assistant", "type": "message", "end": True}  # what comes next is another reply

    def _count_request(self) -> None:
        most = self.interpreter.max_turns
        if most is not None and self._requests >= most:
            words = f"The model has been asked {most} times for this message, which is the limit (`max_turns`)."
            raise LimitReachedError(words)
        self._requests += 1

    def _ask(self, prodding: bool) -> Generator[Chunk, None, bool]:
        """One reply of the model, its blocks run as they come; gives whether it had a block of prose."""
        reply = Reply(self.interpreter.llm.run(self._messages(prodding)), self.interpreter.llm.cancel)
        prose = False
        code: list[str] = []
        with closing(reply):
            for chunk in reply:
                if self.interpreter.cancelled:
                    self.over = True
                    return prose
                if chunk["type"] != "code":
                    yield {**chunk, "role": "computer" if chunk["type"] == "status" else "assistant"}
                elif chunk["format"].lower() in PROSE_LANGUAGES:
                    yield from as_prose(chunk, begun=prose)
                    prose = not chunk.get("end") or prose
                elif not chunk.get("end"):
                    if not code:
                        self._warm(chunk["format"])
                    code.append(chunk["content"])
                    yield {**chunk, "role": "assistant"}
                else:
                    yield {**chunk, "role": "assistant"}
                    is_last = self.interpreter.llm.profile.one_block
                    reply.close() if is_last else reply.read_on_in_background()
                    if not self.over:
                        yield from self._block(chunk["format"], "".join(code))
                    if is_last:
                        return prose
                    code = []
        return prose

    def _messages(self, prodding: bool) -> list[Message]:
        interpreter = self.interpreter
        if note := news(interpreter):
            interpreter.messages.append({"role": "computer", "type": "message", "content": note})
        messages = [system_message(interpreter), *interpreter.messages]
        if self.patience.advice is not None:
            begun = interpreter.last_messages_count
            messages[begun + 1 :] = without_failures(interpreter.messages[begun:])
            advice: Message = {"role": "computer", "type": "message", "content": self.patience.advice}
            messages.append({**advice, "ended": "error"} if self.patience.is_about_failure else advice)
        if prodding:
            messages.append({"role": "user", "type": "message", "content": interpreter.loop_message})
        return messages

    def _wants_more(self) -> bool:
        """Whether loop mode asks the model to go on."""
        interpreter = self.interpreter
        if not interpreter.loop or self.over or self.guard.exhausted or not interpreter.messages:
            return False
        last = interpreter.messages[-1]
        said = str(last.get("content", ""))
        return last["role"] == "assistant" and not any(phrase in said for phrase in interpreter.loop_breakers)

    def _warm(self, language: str) -> None:
        """Start the session while the code is still arriving; what fails here fails again, visibly, in the block."""
        try:
            self.interpreter.computer.warm(language)
            self.interpreter.timeline.prepare()
        except InterpreterError:
            pass

    # -- a block -------------------------------------------------------------------------------------------------

    def _block(self, language: str, code: str) -> Generator[Chunk]:
        """Ask for approval, run the block, and record what came of it."""
        refusal = self.guard.refusal(language, code)
        if refusal is not None:
            self.over = refusal.final
            yield decision("denied", "limit" if self.guard.exhausted else "guard", refusal.words)
            yield from self._say(f"{refusal.words}\n", refusal.failed)
            if refusal.failed and self.patience.refused():
                self.over = self.guard.exhausted
            return
        if self.interpreter.computer.get_language(language) is None:
            self.over = self.guard.repeats(language, code)
            self.guard.ran(language, code, [])
            yield from self._say(f"{unknown_language(language, self.interpreter.computer.languages)}\n")
            return
        pending = PendingBlock(language, code, lambda *block: self.interpreter.scanner.scan(*block))
        yield from self.consent.obtain(pending)
        if pending.denied is not None:
            self.guard.ran(language, code, [pending.denied], failed=True)
            yield from self._say(f"{pending.denied}\n", failed=True)
            return
        if pending.declined:
            yield from self._decline(pending)
            return
        if self.interpreter.cancelled:
            self.over = True
            return
        before = len(self.interpreter.messages)
        self._changed = None
        if pending.effects is not None:
            self.interpreter._defined |= pending.effects.defines
        yield from self._execute(pending)
        outputs = self.interpreter.messages[before:]
        failure = failure_of(outputs)
        self.guard.ran(language, pending.code, [message.get("content") for message in outputs], failure is not None)
        self.over = self.over or self.interpreter.cancelled
        self.patience.ran(failure)
        if failure is None and self.interpreter.llm.profile.tells_files:
            self._tell_files()

    def _tell_files(self) -> None:
        """Say what became of the files, where the model would not look."""
        interpreter = self.interpreter
        if not interpreter.timeline.watches_files:
            return
        said = (m for m in reversed(interpreter.messages) if m["role"] == "user" and m["type"] == "message")
        words = next((str(message["content"]) for message in said), "")
        message: Message = {"role": "computer", "type": "message", "recipient": "assistant"}
        if told := aftermath(self._changed, str(interpreter.workspace)):
            interpreter.messages.append({**message, "content": told})
        elif not self._changed_any and is_undone(words, self._changed):
            self._changed_any = True  # it is said once
            interpreter.messages.append({**message, "content": UNDONE, "ended": "error"})

    def _decline(self, pending: PendingBlock) -> Generator[Chunk]:
        """Tell the model that the block did not run, and what is known of why."""
        messages = self.interpreter.messages
        findings = told_findings(pending)
        if pending.nobody and pending.needs_somebody:
            self.over = True
            yield from self._say("\n".join(filter(None, [f"Not run: {NOBODY_THERE}", findings])) + "\n", failed=True)
            return
        messages.append({"role": "user", "type": "message", "content": DECLINED})
        if findings:
            messages.append({"role": "computer", "type": "message", "content": findings})
        if pending.words:
            messages.append({"role": "user", "type": "message", "content": pending.words})
            self.guard.count()
        else:
            self.over = True

    def _execute(self, pending: PendingBlock) -> Generator[Chunk]:
        if not pending.code.strip():
            yield from self._say("The block was empty: nothing ran.\n")
            return
        self._journal.running()
        asked_about = pending.effects.calls if pending.asked_by_rule and pending.effects is not None else ()
        self.interpreter._approved_calls = frozenset(effect.what for effect in asked_about)
        ended: Chunk | None = None
        if pending.preview is not None:
            running = pending.preview.applied()
        else:
            running = self.interpreter.computer.stream_widened(pending.language, pending.code, pending.widening)
        try:
            with closing(running) as chunks:
                for chunk in chunks:
                    ended = chunk if "ended" in chunk else None
                    if chunk["type"] == "status":
                        self._notice(chunk)
                    if ended is not None and self._control is not None:
                        yield from self._control.after_block()
                    yield {**chunk, "role": "computer"}
        finally:
            self.interpreter._approved_calls = frozenset()
        if ended is None:
            yield {"role": "computer", "type": "console", "format": "active_line", "content": None}

    def _notice(self, status: Chunk) -> None:
        """Take note of what a block did to files and to the screen."""
        if status.get("format") == "files":
            self._changed, self._changed_any = status["content"], True
        elif status.get("format") == "call" and self._control is not None:
            self._control.called(status["content"])

    def _say(self, text: str, failed: bool = False) -> Generator[Chunk]:
        """Tell the model something in the place of a block's output."""
        yield {"role": "computer", "type": "console", "format": "output", "content": text, "ours": True}
        last: Chunk = {"role": "computer", "type": "console", "format": "active_line", "content": None}
        yield {**last, "ended": "error"} if failed else last


def control_of(interpreter: OpenInterpreter) -> Control:
    """In OS mode: the screen, and the user's way to stop what happens there."""
    from interpreter.os_mode import Control

    return Control(interpreter)


def as_prose(chunk: Chunk, begun: bool) -> Iterator[Chunk]:
    """A block in no programming language is something the model says."""
    if chunk.get("end"):
        text = "\n```\n"
    else:
        text = chunk["content"] if begun else "```text\n" + chunk["content"]
    yield {"role": "assistant", "type": "message", "content": text}
