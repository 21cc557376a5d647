"""One turn: ask the model, approve the block, run it, record it, ask again."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.agent.grounding import FILE_NAME, Source, ungrounded
from interpreter.agent.guards import BlockGuard, StuckDetector, explain, failure_of, without_failures
from interpreter.agent.prompt import (
    NOTHING_CHANGED,
    asks_for_answer,
    asks_for_change,
    file_change_note,
    missing_content,
    requested_files,
    stamp_of,
)
from interpreter.computer_api.runtime_pool import unknown_language
from interpreter.errors import InterpreterError, LimitReachedError, ModelError, RepeatingReplyError
from interpreter.host import files
from interpreter.llm.file_preview import beginning, peek
from interpreter.llm.reply_parser import repaired
from interpreter.llm.text_mode import PROSE_LANGUAGES
from interpreter.messages import DECLINED, Chunk, Fold, Message
from interpreter.policy.approval import UNATTENDED, BlockReview, decision, format_findings
from interpreter.runtimes.missing_packages import only_installs
from interpreter.session import Action, Block, Event, Ids, Publisher, ToolCall, new_id
from interpreter.tools.toolbox import problem_with, read_arguments

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.computer_api.os_mode import ScreenControl

Step = Chunk | Event  # what a turn yields inside: chunks to publish, and events that the session has published

ONLY_FIRST = "Only the first block of a reply runs. The rest of this reply was not run."
NOT_RUN = "Not run, because only the first block of a reply runs:\n{block}\nSend it again if it is still needed."
# What the model reads if it ends a turn in which it has only installed packages.
ONLY_INSTALLED = (
    "So far, packages were installed and nothing else was done. Write the next code block, which does this: {request}"
)
MAX_REMINDERS = 2
MAX_NOT_RUN = 1000  # characters of a block that did not run, for the model
# Why a turn ended, where neither the last answer nor the user's own doing shows it.
ENDINGS = {
    "limit": "Stopped: the limit of {limit} blocks in one turn (`max_blocks`) is reached.",
    "repetition": "Stopped: the model was repeating itself.",
    "no effect": "Stopped: the last actions changed nothing on the screen.",
}
_REVIEW = "{text} Compute or write what is missing, and print it. My request was: {request}"
_MAX_ANSWERS = 3  # in a row without an action, where `loop` asks the model to continue


# How many characters after a block are read to see whether another one begins, where only the first one runs.
LOOK_AHEAD = 200


def _is_block(chunk: Chunk) -> bool:
    """Whether it belongs to something that could run."""
    is_code = chunk["type"] == "code" and chunk["format"].lower() not in PROSE_LANGUAGES
    return is_code or chunk["type"] == "tool_call"


class StreamedReply(Iterator[Chunk]):
    """Iterates over a model's chunks.

    Approval of a block can take minutes. A server does not wait that long for its client to continue reading.
    """

    def __init__(self, chunks: Iterator[Chunk], cut: Callable[[], None]) -> None:
        self._chunks = chunks
        self._cut = cut  # ends a read that waits
        self._rest: queue.SimpleQueue[Chunk | BaseException | None] | None = None
        self._closed = self._ended = False

    def __next__(self) -> Chunk:
        if self._rest is None:
            return next(self._chunks)
        item = self._rest.get()
        if item is None or isinstance(item, BaseException):
            self._rest.put(None)
            raise StopIteration if item is None else item
        return item

    def read_on_in_background(self, only_ahead: bool = False) -> None:
        """Keep the connection flowing from now on; with `only_ahead` no further than needed to see what comes next."""
        if self._rest is None:
            self._rest = queue.SimpleQueue()
            threading.Thread(target=self._read, args=[self._rest, only_ahead], name="reply", daemon=True).start()

    def _read(self, rest: queue.SimpleQueue[Chunk | BaseException | None], only_ahead: bool) -> None:
        left, in_block = LOOK_AHEAD, False
        last: BaseException | None = None
        try:
            for chunk in self._chunks:
                rest.put(chunk)
                if _is_block(chunk) and not in_block:
                    left, in_block = MAX_NOT_RUN, True
                left -= len(chunk.get("content") or "") if chunk["type"] != "status" else 0
                if self._closed or (only_ahead and (left < 0 or (in_block and chunk.get("end")))):
                    break
        except Exception as error:  # noqa: BLE001 - handed to the turn, which raises it
            last = error
        finally:
            if isinstance(self._chunks, Generator):
                self._chunks.close()  # before the turn continues: its next request is another one
            self._ended = True
            rest.put(last)

    def close(self) -> None:
        """Stop reading: the rest is not needed."""
        self._closed = True
        if self._rest is not None and not self._ended:
            self._cut()
        elif self._rest is None and isinstance(self._chunks, Generator):
            self._chunks.close()


class Turn:
    """Everything between the user's message and the next prompt."""

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self.interpreter = interpreter
        interpreter.llm.assess()
        profile = interpreter.llm.profile
        self.guard = BlockGuard(interpreter.max_blocks, profile.same_results)
        self.stuck = StuckDetector(
            profile.same_failures, lambda failure: explain(failure, interpreter.computer.context.cwd, self._tables)
        )
        self.over = False
        self.ending = ""
        self._answers: list[str] = []  # the last ones, since the model last acted
        self._changed: dict[str, Any] | None = None  # by the block that ran last
        self._changed_any = False  # by any block of the turn
        self._untold: dict[str, Any] = {}  # changes, by path, that the model does not know about yet
        self._told_columns = False
        self._only_installed: bool | None = None  # whether all that has run installs packages; None if nothing has
        self._just_installed = False  # whether the last block did, and worked
        self._installations_told = 0
        self._written: set[str] = set()  # paths in the workspace
        self._folder = interpreter.computer.context.cwd
        self._requested: dict[str, tuple[int, int] | None] = {}  # with their state at the beginning
        if profile.reviews_answers and not interpreter.computer.context.elsewhere:
            self._requested = requested_files(self._request(), self._folder)
        self._review: str | None = None  # what the model is asked about its answer; at most once
        self._fold = Fold(lambda: interpreter.messages, interpreter.max_output)
        self._journal = interpreter.journal
        self._publisher = Publisher(
            interpreter.session.log, Ids(new_id("t"), "", interpreter.agent.id), self._fold, self._journal
        )
        self._control: ScreenControl | None = None
        if interpreter.os:
            from interpreter.computer_api.os_mode import ScreenControl

            self._control = ScreenControl(interpreter)

    def run(self) -> Generator[Event]:
        """Every event of the turn, recorded before it is yielded."""
        interpreter, publisher = self.interpreter, self._publisher
        try:
            interpreter.timeline.tell_model(interpreter)
            begun = interpreter.session.log.publish("turn", {"state": "begun"}, publisher.ids)
            self._journal.begin_turn(self._fold, publisher.ids)
            interpreter.timeline.begin_turn(interpreter)
            yield begun
            with closing(self._converse()) as steps:
                for step in steps:
                    if isinstance(step, Event):
                        yield step
                    else:
                        yield from publisher.publish(step)
                    if (notice := self._journal.take_notice()) is not None:
                        yield from publisher.publish(notice)
            yield from publisher.close()
            for chunk in self._control.farewell() if self._control is not None else ():
                yield from publisher.publish(chunk)
            self.ending = "stopped" if interpreter.cancelled else self.ending or "answered"
            if words := ENDINGS.get(self.ending):
                words = words.format(limit=interpreter.max_blocks)
                yield from publisher.publish(
                    {"role": "computer", "type": "status", "format": "notice", "content": {"text": words}}
                )
            for check, items, text in self._shortcomings() if self.ending not in ("stopped", "declined") else ():
                if items:
                    self.ending = "unfinished" if (check, self.ending) == ("result", "answered") else self.ending
                    content = {"text": text, "check": check, "items": items}
                    yield from publisher.publish(
                        {"role": "computer", "type": "status", "format": "notice", "content": content}
                    )
        except (KeyboardInterrupt, InterpreterError) as error:
            self.ending = {KeyboardInterrupt: "stopped", LimitReachedError: "limit"}.get(type(error), "error")
            yield from publisher.close()
            raise
        finally:
            self._fold.close()
            self._journal.announce(publisher.ids, self._fold)
            self._journal.end_turn()
            if self._control is not None:
                self._control.end()
            ended = interpreter.session.log.publish(
                "turn", {"state": "ended", "reason": self.ending or "stopped"}, publisher.ids
            )
        yield ended

    def _end(self, ending: str) -> None:
        self.over, self.ending = True, ending

    # -- the walk ------------------------------------------------------------------------------------------------

    def _converse(self) -> Generator[Step]:
        """Ask, and as long as blocks ran, ask again."""
        prodding, requests = False, 0
        if self._control is not None:
            try:
                self.interpreter.computer.display.size()
            except InterpreterError:  # a block that uses the screen ends with this error, which says what is missing
                self._control = None
            else:
                yield from self._control.begin()
        last = self.interpreter.messages[-1] if self.interpreter.messages else {}
        if last.get("role") == "assistant" and last.get("type") == "code":
            last["format"], last["content"] = repaired(last.get("format", "python"), last["content"])
            yield from self._block(last["format"], last["content"])
        while not self.over:
            most = self.interpreter.max_turns
            if most is not None and requests >= most:
                raise LimitReachedError(f"Stopped: the limit of {most} requests per message (`max_turns`) is reached.")
            requests += 1
            count = self.guard.blocks
            try:
                prose_only = yield from self._ask(prodding)
            except RepeatingReplyError as error:
                self.stuck.on_reply_repeated(error)
                yield {"role": "assistant", "type": "message", "end": True}
                continue
            prodding = False
            if not (self.over or self.guard.blocks > count or (prose_only and self.guard.count_prose_block())):
                if self._reminds_of_request() or self._asks_again():
                    yield {"role": "assistant", "type": "message", "end": True}
                    continue
                if not self._wants_more():
                    return
                prodding = True
                self.guard.blocks += 1
                yield {"role": "assistant", "type": "message", "content": "\n\n"}  # the reply continues
            else:
                self._answers = []
                yield {"role": "assistant", "type": "message", "end": True}  # what comes next is another reply

    def _ask(self, prodding: bool) -> Generator[Step, None, bool]:
        """One reply of the model, its blocks run as they come; gives whether it had a block of prose."""
        reply = StreamedReply(self.interpreter.llm.reply(self._messages(prodding)), self.interpreter.llm.cancel)
        only_first = self.interpreter.llm.profile.one_block
        prose = False
        code: list[str] = []
        self._answers.append("")
        with closing(reply):
            for chunk in reply:
                if self.interpreter.cancelled:
                    self.over = True
                    return prose
                if chunk["type"] == "message":
                    self._answers[-1] += chunk.get("content") or ""
                if chunk["type"] not in ("code", "tool_call"):
                    yield {**chunk, "role": "computer" if chunk["type"] == "status" else "assistant"}
                elif chunk["type"] == "code" and chunk["format"].lower() in PROSE_LANGUAGES:
                    # a block in no programming language is something the model says
                    if chunk.get("end"):
                        text = "\n```\n"
                    else:
                        text = chunk["content"] if prose else "```text\n" + chunk["content"]
                        prose = True
                    yield {"role": "assistant", "type": "message", "content": text}
                elif not chunk.get("end"):
                    if not code and chunk["type"] == "code":  # start the runtime while the code is still arriving
                        with contextlib.suppress(InterpreterError):  # which the block would raise again
                            self.interpreter.runtimes.warm(chunk["format"])
                            self.interpreter.timeline.files.prepare()
                    code.append(chunk["content"])
                    yield {**chunk, "role": "assistant"}
                else:
                    yield {**chunk, "role": "assistant"}
                    block = "".join(code)
                    runs_next = only_first and chunk["type"] == "code" and only_installs(chunk["format"], block)
                    reply.read_on_in_background(only_ahead=only_first and not runs_next)
                    if not self.over and chunk["type"] == "tool_call":
                        yield from self._call_tool(chunk["format"], block, chunk.get("call"))
                    elif not self.over:
                        yield from self._block(chunk["format"], block)
                    if only_first and not (runs_next and self._just_installed and not self.over):
                        yield from self._tell_dropped(reply)
                        return prose
                    code = []
        return prose

    def _messages(self, prodding: bool) -> list[Message]:
        interpreter = self.interpreter
        if note := interpreter.prompt.sandbox_news():
            interpreter.messages.append({"role": "computer", "type": "message", "content": note})
        self._journal.announce(self._publisher.ids, self._fold)
        messages = [interpreter.prompt.system_message(), *interpreter.messages]
        if self.stuck.advice is not None:
            begun = interpreter.last_messages_count
            messages[begun + 1 :] = without_failures(interpreter.messages[begun:])
            messages.append({**self.stuck.advice})
        if prodding:
            messages.append({"role": "user", "type": "message", "content": interpreter.loop_message})
        if self._review:
            messages.append({"role": "user", "type": "message", "content": self._review})
            self._review = ""
        return messages

    # -- the answer --------------------------------------------------------------------------------------------------

    def _asks_again(self) -> bool:
        """Whether a small model is asked once more, because its answer leaves something out or nothing shows it."""
        may_ask = self._review is None and not (self.over or self.guard.exhausted)
        if may_ask and self.interpreter.llm.profile.reviews_answers:
            texts = [text for _, items, text in self._shortcomings() if items]
            self._review = _REVIEW.format(text=" ".join(texts), request=self._request()) if texts else None
            return bool(texts)
        return False

    def _shortcomings(self) -> Iterator[tuple[str, list[str], str]]:
        """What the request wants and the turn has not done; what the answer states and nothing shows."""
        now = {name: stamp_of(name, self._folder) for name in self._requested}
        unmet = [f"There is no {name}." for name, stamp in now.items() if stamp is None]
        unmet += [f"{name} has not changed." for name, stamp in now.items() if stamp and stamp == self._requested[name]]
        steps = self.interpreter.messages[self.interpreter.last_messages_count :]
        shown = any(message["role"] == "computer" and str(message.get("content", "")).strip() for message in steps)
        has_acted = self.interpreter.llm.profile.reviews_answers and self.guard.blocks > 0
        if has_acted and not (shown or self._written or unmet) and asks_for_answer(self._request()):
            unmet.append("The code printed nothing, so the question has no answer.")
        # The model was told about the content after the block, so only the user is told at the end.
        written = [{"path": path, "what": "changed"} for path in self._written if has_acted and self.ending]
        unmet += filter(None, [missing_content(self._request(), written, str(self.interpreter.workspace))])
        yield "result", unmet, " ".join(unmet)
        missing = self._ungrounded()
        named = " and ".join(filter(None, [", ".join(missing[:-1]), *missing[-1:]]))
        yield "answer", missing, f"{named} {'are' if missing[1:] else 'is'} not in any output."

    def _ungrounded(self) -> list[str]:
        """The numbers, dates and files in the answer that occur in no output, file or message."""
        interpreter = self.interpreter
        turn = interpreter.messages[max(0, interpreter.last_messages_count - 1) :]
        answer = "\n".join(self._answers)[-20_000:]  # more would take too long
        has_read = any(m["type"] in ("code", "tool_call", "file") for m in turn) or (
            interpreter.llm.profile.reviews_answers and any(map(self._exists, FILE_NAME.findall(self._request())))
        )
        # A picture that the model has seen may say anything.
        has_seen = interpreter.os or any((m["role"], m["type"]) == ("user", "image") for m in interpreter.messages)
        if not interpreter.check_answers or has_seen or not has_read:
            return []
        return ungrounded(answer, self._sources(), self._exists)

    def _sources(self) -> Iterator[Source]:
        """What an answer may draw on, the newest first; files only if that is not enough."""
        paths = [
            *(str(Path(self.interpreter.workspace, path)) for path in self._written),
            *FILE_NAME.findall(self._request()),
        ]
        for message in reversed(self.interpreter.messages):
            by_model = message["role"] == "assistant"
            if message["type"] != "image" and not (by_model and message["type"] == "message"):
                yield Source(f"{message.get('content')}\n{message.get('note', '')}", "code" if by_model else "text")
            paths.append(message.get("truncated", ""))
        if not self.interpreter.computer.context.elsewhere:
            yield Source(peek(self._request(), self._folder))
            for path in filter(None, dict.fromkeys(paths)):
                with contextlib.suppress(OSError, ValueError):
                    yield Source(files.read_bytes(Path(self._folder, path), 1_000_000).decode(errors="ignore"), "file")

    def _exists(self, name: str) -> bool:
        # Files on another machine are not looked up.
        return bool(self.interpreter.computer.context.elsewhere) or any(
            stamp_of(name, str(folder)) for folder in (self._folder, self.interpreter.workspace)
        )

    def _tables(self) -> str:
        """The columns of the live tables with their types, or else how the files begin that the request names."""
        from interpreter.runtimes.state import TableWindow

        tables = []
        with contextlib.suppress(InterpreterError):
            for variable in self.interpreter.computer.variables().get("Python", ()):
                types = variable.type == "DataFrame" and self.interpreter.computer.look(
                    "python", f"{variable.name}.dtypes"
                )
                if isinstance(types, TableWindow):
                    columns = ", ".join(map("{} ({})".format, types.index, types.cells[0]))
                    tables.append(f"{variable.name} has the columns {columns}.")
        return "\n".join(
            tables or (beginning(name, Path(self._folder, name)) for name in FILE_NAME.findall(self._request()))
        )

    def _request(self) -> str:
        """The user's words that this turn answers."""
        said = (m for m in reversed(self.interpreter.messages) if m["role"] == "user" and m["type"] == "message")
        return next((str(message["content"]) for message in said), "")

    def _wants_more(self) -> bool:
        """Whether to ask again after an answer without an action; if that leads nowhere, the turn ends."""
        interpreter = self.interpreter
        if not interpreter.loop or self.over or not interpreter.messages:
            return False
        last = interpreter.messages[-1]
        said = str(last.get("content", ""))
        if last["role"] != "assistant" or any(phrase in said for phrase in interpreter.loop_breakers):
            return False
        words = [" ".join(answer.split()) for answer in self._answers]
        if self.guard.exhausted:
            self._end("limit")
        elif len(words) >= _MAX_ANSWERS or words[-1] in words[:-1]:
            self._end("repetition")
        return not self.over

    def _tell_dropped(self, reply: StreamedReply) -> Generator[Chunk]:
        """Where only the first block of a reply runs: tell the user and the model if there were more."""
        language, parts = "", list[str]()
        with contextlib.suppress(ModelError):  # the block that runs had arrived by then
            for chunk in reply:
                if chunk["type"] == "status":
                    yield {**chunk, "role": "computer"}
                elif _is_block(chunk):
                    language = chunk["format"]
                    parts.append(chunk.get("content") or "")
                    if chunk.get("end"):
                        break
        if not language or self.over:
            return
        self._note(NOT_RUN.format(block=f"```{language.lower()}\n{''.join(parts)[:MAX_NOT_RUN].rstrip()}\n```"))
        yield {"role": "computer", "type": "status", "format": "notice", "content": {"text": ONLY_FIRST}}

    def _reminds_of_request(self) -> bool:
        """Ask again after an answer, if all that has run only installed packages: that was not the request."""
        if not self._only_installed or self._installations_told >= MAX_REMINDERS:
            return False
        self._installations_told += 1
        request = self._request()[:MAX_NOT_RUN]
        if "install" in request.lower():
            return False
        content = ONLY_INSTALLED.format(request=request)
        self.interpreter.messages.append({"role": "computer", "type": "message", "content": content})
        return True

    # -- a tool call ---------------------------------------------------------------------------------------------

    def _call_tool(self, name: str, arguments: str, call: str | None) -> Generator[Step]:
        """Call a tool, and record its result under the id of the call."""
        fields: Chunk = {"call": call} if call is not None else {}
        refusal = self.guard.refusal(name, arguments)
        if refusal is not None:
            if refusal.final:
                self._end("limit" if self.guard.exhausted else "repetition")
            for chunk in self._say(f"{refusal.words}\n", refusal.failed):
                yield {**chunk, **fields}
            return
        before, tools = len(self.interpreter.messages), self.interpreter.tools
        self._only_installed = False
        tool_call = ToolCall(
            tools.get(name), read_arguments(arguments) or {}, problem=problem_with(tools, name, arguments)
        )
        yield from self._performed(tool_call, fields)
        results = self.interpreter.messages[before:]
        self.guard.on_block_ended(
            name, arguments, [result.get("content") for result in results], bool(failure_of(results))
        )
        self.over = self.over or self.interpreter.cancelled

    # -- a block -------------------------------------------------------------------------------------------------

    def _block(self, language: str, code: str) -> Generator[Step]:
        self._just_installed = False
        refusal = self.guard.refusal(language, code)
        if refusal is not None:
            if refusal.final:
                self._end("limit" if self.guard.exhausted else "repetition")
            yield decision("denied", "limit" if self.guard.exhausted else "guard", refusal.words)
            yield from self._say(f"{refusal.words}\n", refusal.failed)
            if refusal.failed and self.stuck.on_block_refused():
                self.over, self.ending = self.guard.exhausted, "limit" if self.guard.exhausted else ""
            return
        interpreter = self.interpreter
        if interpreter.computer.get_language(language) is None:
            if self.guard.repeats(language, code):
                self._end("repetition")
            self.guard.on_block_ended(language, code, [])
            yield from self._say(f"{unknown_language(language, interpreter.runtimes.available())}\n")
            return
        yield from interpreter.tell_apart()
        last = interpreter.messages[-1] if interpreter.messages else None
        is_code = last is not None and last["role"] == "assistant" and last["type"] == "code"
        block = Block(language, code, last if is_code else None)
        before = len(interpreter.messages)
        self._changed = None
        yield from self._performed(block)
        review = block.review
        if review is not None and review.denied is not None:
            self.guard.on_block_ended(language, code, [review.denied], failed=True)
            yield from self._say(f"{review.denied}\n", failed=True)
        elif review is not None and review.declined:
            yield from self._decline(review)
        elif interpreter.cancelled and not block.outcome:
            self.over = True
        else:
            outputs = interpreter.messages[before:]
            failure = failure_of(outputs)
            results = [message.get("content") for message in outputs]
            self.guard.on_block_ended(block.language, block.code, results, failure is not None)
            installs = only_installs(block.language, block.code)
            self._only_installed = installs and self._only_installed is not False
            self._just_installed = installs and failure is None
            self.over = self.over or interpreter.cancelled
            self.stuck.on_block_ended(failure)
            if failure is None and not installs and interpreter.llm.profile.tells_files:
                self._tell_files()

    def _performed(self, action: Action, fields: Chunk | None = None) -> Generator[Step]:
        """Perform it, with a picture of the screen at its end in OS mode. Its chunks get these fields."""
        interpreter, publisher = self.interpreter, self._publisher
        action.turn_cancelled = lambda: interpreter.cancelled
        publisher.fields = fields or {}
        performance = interpreter.session.perform(action, interpreter.agent, publisher=publisher)
        with closing(performance):
            for event in performance:
                chunk: Chunk = event.chunk or {}
                match chunk:
                    case {"type": "status", "format": "files"}:
                        self._changed, self._changed_any = chunk["content"], True
                        for each in chunk["content"].get("changed", ()):
                            self._written.add(each["path"])
                            if each["what"] != "touched" or each["path"] not in self._untold:
                                self._untold[each["path"]] = each
                    case {"type": "status", "format": "call"} if self._control is not None:
                        self._control.called(chunk["content"])
                if "ended" in chunk and self._control is not None:
                    yield from self._control.after_block()
                    if self._control.is_stuck:
                        self._end("no effect")
                yield event
        publisher.fields = {}

    def _tell_files(self) -> None:
        """Tell the model which files changed, where it would not check."""
        interpreter = self.interpreter
        if interpreter.timeline.files.record() is None:
            return
        words = self._request()
        # A block that failed may have written files, too.
        last, changes = self._changed or {}, list(self._untold.values())
        folder, self._untold = str(interpreter.workspace), {}
        if note := file_change_note(changes, folder):
            missing = "" if self._told_columns else missing_content(words, changes, folder)
            self._note("\n".join(filter(None, (note, missing))))
            if missing:
                self._told_columns, interpreter.messages[-1]["ended"] = True, "unfinished"
        elif not (self._changed_any or last.get("off") or last.get("not_covered")) and asks_for_change(words):
            self._changed_any = True  # say it once
            self._note(NOTHING_CHANGED)["ended"] = "unfinished"

    def _note(self, text: str) -> Message:
        """Tell the model something together with the last output; what was printed stays as it is."""
        messages = self.interpreter.messages
        if not messages or messages[-1]["role"] != "computer" or messages[-1]["type"] != "console":
            messages.append({"role": "computer", "type": "console", "format": "output", "content": ""})
        messages[-1]["note"] = "\n".join(filter(None, (messages[-1].get("note"), text)))
        return messages[-1]

    def _decline(self, review: BlockReview) -> Generator[Chunk]:
        """Tell the model that the block did not run, and why if that is known."""
        messages = self.interpreter.messages
        findings = format_findings(review)
        if review.unattended and review.requires_approval:
            self._end("declined")
            yield from self._say("\n".join(filter(None, [f"Not run: {UNATTENDED}", findings])) + "\n", failed=True)
            return
        messages.append({"role": "user", "type": "message", "content": DECLINED, "declined": True})
        if findings:
            messages.append({"role": "computer", "type": "message", "content": findings})
        if review.words:
            messages.append({"role": "user", "type": "message", "content": review.words})
            self.guard.blocks += 1
        else:
            self._end("declined")

    def _say(self, text: str, failed: bool = False) -> Generator[Chunk]:
        """Tell the model something in place of a block's output."""
        yield {"role": "computer", "type": "console", "format": "output", "content": text, "ours": True}
        last: Chunk = {"role": "computer", "type": "console", "format": "active_line", "content": None}
        yield {**last, "ended": "error"} if failed else last
