"""One turn: ask the model, approve the block, run it, record it, ask again."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from interpreter.agent.answer_check import AnswerCheck
from interpreter.agent.guards import BlockGuard, StuckDetector, explain, failure_of, without_failures
from interpreter.agent.observer import TurnObserver
from interpreter.agent.small_models import (
    NOTHING_CHANGED,
    asks_for_change,
    file_change_note,
    missing_content,
)
from interpreter.agent.streamed_reply import MAX_NOT_RUN, StreamedReply, is_block
from interpreter.errors import InterpreterError, LimitReachedError, ModelError, RepeatingReplyError, UsageError
from interpreter.llm.reply_parser import repaired
from interpreter.llm.text_mode import PROSE_LANGUAGES
from interpreter.messages import DECLINED, Chunk, Fold, Message, notice
from interpreter.policy.review import UNATTENDED, BlockReview, decision, format_findings
from interpreter.runtimes.missing_packages import only_installs
from interpreter.runtimes.pool import unknown_language
from interpreter.session import Action, ActionContext, ActionFields, Block, Event, Publisher, Session, ToolCall, new_id
from interpreter.sigint import interrupted_here
from interpreter.tools.toolbox import problem_with, read_arguments

if TYPE_CHECKING:
    from interpreter.agent.agent import Agent

Step = Chunk | Event  # what a turn yields inside: chunks to publish, and events that the session has published

ONLY_FIRST = "Only the first block of a reply runs. The rest of this reply was not run."
NOT_RUN = "Not run, because only the first block of a reply runs:\n{block}\nSend it again if it is still needed."
# What the model reads if it ends a turn in which it has only installed packages.
ONLY_INSTALLED = (
    "So far, packages were installed and nothing else was done. Write the next code block, which does this: {request}"
)
MAX_REMINDERS = 2
# Why a turn ended, where neither the last answer nor the user's own doing shows it.
ENDINGS = {
    "limit": "Stopped: the limit of {limit} blocks in one turn (`max_blocks`) is reached.",
    "repetition": "Stopped: the model was repeating itself.",
    "no effect": "Stopped: the last actions changed nothing on the screen.",
}
_REVIEW = "{text} Compute or write what is missing, and print it. My request was: {request}"
_MAX_ANSWERS = 3  # in a row without an action, where `loop` asks the model to continue


class Turn(Action):
    """Everything between a message of the user and the next prompt. Its blocks and calls are separate actions."""

    kind = "turn"
    needs_lane = False
    # Those of this turn, once it runs: they depend on the model, which may have to be asked.
    guard: BlockGuard
    stuck: StuckDetector
    _answer_check: AnswerCheck

    def __init__(self, agent: Agent, message: Any) -> None:
        super().__init__()
        self.id = self.turn = new_id("t")
        self.agent, self._message = agent, message
        self.is_done = False
        self.ending = ""
        self._answers: list[list[str]] = []  # the last ones, in pieces, since the model last acted
        self._changed: dict[str, Any] | None = None  # by the block that ran last
        self._changed_any = False  # by any block of the turn
        self._untold: dict[str, Any] = {}  # changes, by path, that the model does not know about yet
        self._told_columns = False
        self._only_installed: bool | None = None  # whether all that has run installs packages; None if nothing has
        self._just_installed = False  # whether the last block did, and worked
        self._installations_told = 0
        self._review: str | None = None  # what the model is asked about its answer; at most once
        self._missing = ""  # what that names as missing
        self._fold = Fold(lambda: agent.messages, agent.settings.max_output)
        self._observers: list[TurnObserver] = []

    # -- for the pipeline ------------------------------------------------------------------------------------------

    def describe(self) -> str:
        return f"{self.agent.actor.id} is responding"

    @property
    def ending_fields(self) -> ActionFields:
        return {"reason": self.ending or "stopped"}

    def publisher(self, session: Session) -> Publisher:
        self._publisher = Publisher(session.log, self.ids, self._fold, self.agent.journal)
        return self._publisher

    def begin(self, context: ActionContext) -> None:
        """Take the message; BusyError if another thread is reading a turn of this agent."""
        agent, message = self.agent, self._message
        if not isinstance(message, str | dict | list):
            kind = type(message).__name__
            raise UsageError(f"chat() takes a string, a message or a list of messages, not {kind}.")
        agent.open_turn(self)
        if interrupted_here():
            self.cancel()  # Ctrl-C came before there was a turn to cancel
        match message:
            case str():
                agent.messages.append({"role": "user", "type": "message", "content": message})
            case dict():
                agent.messages.append({"role": "user", "type": "message", **message})  # type: ignore[typeddict-item]
            case _:  # another conversation
                agent.messages = message
        agent.last_messages_count = len(agent.messages)
        agent.timeline.tell_model(agent)
        agent.journal.open()

    def check(self, call: ToolCall) -> None:
        for observer in self._observers:
            observer.check(call)

    def stop(self) -> None:
        self.agent.llm.cancel()

    def end(self) -> None:
        super().end()
        self.agent.close_turn(self)

    def run(self, context: ActionContext) -> Generator[Event]:
        """Yield every event of the turn, recorded before it is yielded."""
        agent, publisher, journal = self.agent, self._publisher, self.agent.journal
        agent.llm.assess()
        profile = agent.llm.profile
        self.guard = BlockGuard(agent.settings.max_blocks, profile.same_results)
        self.stuck = StuckDetector(
            profile.same_failures,
            lambda failure: explain(failure, agent.computer.context.cwd, self._answer_check.tables),
        )
        self._answer_check = AnswerCheck(agent)
        self._observers = agent.observers()
        try:
            journal.begin_turn(self._fold, publisher.ids)
            agent.timeline.begin_turn(agent)
            for text in agent.notices() if sum(each["role"] == "user" for each in agent.messages) == 1 else ():
                yield from publisher.publish(notice(text, aside=True))
            with closing(self._converse()) as steps:
                for step in steps:
                    if isinstance(step, Event):
                        yield step
                    elif (event := publisher.append(step)) is not None:
                        yield event
                    else:
                        yield from publisher.publish(step)
                    if journal.notice is not None:
                        unsaved, journal.notice = journal.notice, None
                        yield from publisher.publish(unsaved)
            yield from publisher.close()
            for observer in self._observers:
                for chunk in observer.farewell():
                    yield from publisher.publish(chunk)
            self.ending = "stopped" if self.is_cancelled() else self.ending or "answered"
            self.outcome = "cancelled" if self.ending == "stopped" else "done"
            for chunk in self._closing_notices():
                yield from publisher.publish(chunk)
        except (KeyboardInterrupt, InterpreterError) as error:
            self.ending = {KeyboardInterrupt: "stopped", LimitReachedError: "limit"}.get(type(error), "error")
            yield from publisher.close()
            raise
        finally:
            self._fold.close()
            journal.announce(publisher.ids, self._fold)
            journal.end_turn()
            for observer in self._observers:
                observer.end()

    def _closing_notices(self) -> Iterator[Chunk]:
        """Yield notices about the turn's end and the problems of its answer."""
        if text := ENDINGS.get(self.ending):
            yield notice(text.format(limit=self.agent.settings.max_blocks))
        for check, items, text in self._shortcomings() if self.ending not in ("stopped", "declined") else ():
            if items:
                self.ending = "unfinished" if (check, self.ending) == ("result", "answered") else self.ending
                yield notice(text, check=check, items=items)

    def _end(self, ending: str) -> None:
        self.is_done, self.ending = True, ending

    # -- the walk ------------------------------------------------------------------------------------------------

    def _converse(self) -> Generator[Step]:
        """Ask, and as long as blocks ran, ask again."""
        prodding, requests = False, 0
        for observer in self._observers:
            yield from observer.begin()
        last = self.agent.messages[-1] if self.agent.messages else {}
        if last.get("role") == "assistant" and last.get("type") == "code":
            last["format"], last["content"] = repaired(last.get("format", "python"), last["content"])
            yield from self._block(last["format"], last["content"])
        while not self.is_done:
            most = self.agent.settings.max_turns
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
            if not (self.is_done or self.guard.blocks > count or (prose_only and self.guard.count_prose_block())):
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
        """Request one reply and run its blocks as they arrive. Return whether a block contained prose."""
        reply = StreamedReply(self.agent.llm.reply(self._messages(prodding)), self.agent.llm.cancel)
        only_first = self.agent.llm.profile.one_block
        prose = False
        code: list[str] = []
        self._answers.append([])
        is_cancelled = self.is_cancelled
        with closing(reply):
            for chunk in reply:
                if is_cancelled():
                    self.is_done = True
                    return prose
                if chunk["type"] == "message":
                    self._answers[-1].append(chunk.get("content") or "")
                    yield {**chunk, "role": "assistant"}
                elif chunk["type"] not in ("code", "tool_call"):
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
                            self.agent.runtimes.warm(chunk["format"])
                            self.agent.timeline.files.prepare()
                    code.append(chunk["content"])
                    yield {**chunk, "role": "assistant"}
                else:
                    yield {**chunk, "role": "assistant"}
                    block = "".join(code)
                    runs_next = only_first and chunk["type"] == "code" and only_installs(chunk["format"], block)
                    reply.read_on_in_background(only_ahead=only_first and not runs_next)
                    if not self.is_done and chunk["type"] == "tool_call":
                        yield from self._call_tool(chunk["format"], block, chunk.get("call"))
                    elif not self.is_done:
                        yield from self._block(chunk["format"], block)
                    if only_first and not (runs_next and self._just_installed and not self.is_done):
                        yield from self._tell_dropped(reply)
                        return prose
                    code = []
        return prose

    def _messages(self, prodding: bool) -> list[Message]:
        agent = self.agent
        if note := agent.prompt.sandbox_news():
            agent.messages.append({"role": "computer", "type": "message", "content": note})
        agent.journal.announce(self._publisher.ids, self._fold)
        messages = [agent.prompt.system_message(), *agent.messages]
        if self.stuck.advice is not None:
            begun = agent.last_messages_count
            messages[begun + 1 :] = without_failures(agent.messages[begun:])
            messages.append({**self.stuck.advice})
        if prodding:
            messages.append({"role": "user", "type": "message", "content": agent.settings.loop_message})
        if self._review:
            messages.append({"role": "user", "type": "message", "content": self._review})
            self._review = ""
        return messages

    # -- the answer --------------------------------------------------------------------------------------------------

    def _asks_again(self) -> bool:
        """Ask a small model once more if its answer leaves something out or nothing supports it."""
        may_ask = self._review is None and not (self.is_done or self.guard.exhausted)
        if may_ask and self.agent.llm.profile.reviews_answers:
            self._missing = " ".join(text for _, items, text in self._shortcomings() if items)
            if self._missing:
                self._review = _REVIEW.format(text=self._missing, request=self._answer_check.request)
            return bool(self._missing)
        return False

    def _shortcomings(self) -> Iterator[tuple[str, list[str], str]]:
        return self._answer_check.shortcomings(self._texts(), self.guard.blocks, bool(self.ending))

    def _texts(self) -> list[str]:
        return list(map("".join, self._answers))

    def _wants_more(self) -> bool:
        """Decide whether to ask again after an answer without an action; if that leads nowhere, end the turn."""
        agent = self.agent
        if not agent.settings.loop or self.is_done or not agent.messages:
            return False
        last = agent.messages[-1]
        said = str(last.get("content", ""))
        if last["role"] != "assistant" or any(phrase in said for phrase in agent.settings.loop_breakers):
            return False
        words = [" ".join(answer.split()) for answer in self._texts()]
        if self.guard.exhausted:
            self._end("limit")
        elif len(words) >= _MAX_ANSWERS or words[-1] in words[:-1]:
            self._end("repetition")
        return not self.is_done

    def _tell_dropped(self, reply: StreamedReply) -> Generator[Chunk]:
        """Tell the user and the model if the reply had more blocks than the first one, which alone runs."""
        language, parts = "", list[str]()
        with contextlib.suppress(ModelError):  # the block that runs had arrived by then
            for chunk in reply:
                if chunk["type"] == "status":
                    yield {**chunk, "role": "computer"}
                elif is_block(chunk):
                    language = chunk["format"]
                    parts.append(chunk.get("content") or "")
                    if chunk.get("end"):
                        break
        if not language or self.is_done:
            return
        self._note(NOT_RUN.format(block=f"```{language.lower()}\n{''.join(parts)[:MAX_NOT_RUN].rstrip()}\n```"))
        yield notice(ONLY_FIRST)

    def _reminds_of_request(self) -> bool:
        """Ask again after an answer, if all that has run only installed packages: that was not the request."""
        if not self._only_installed or self._installations_told >= MAX_REMINDERS:
            return False
        self._installations_told += 1
        request = self._answer_check.request[:MAX_NOT_RUN]
        if "install" in request.lower():
            return False
        content = ONLY_INSTALLED.format(request=request)
        self.agent.messages.append({"role": "computer", "type": "message", "content": content})
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
        before, tools = len(self.agent.messages), self.agent.tools
        self._only_installed = False
        tool_call = ToolCall(
            tools.get(name), read_arguments(arguments) or {}, problem=problem_with(tools, name, arguments)
        )
        yield from self._performed(tool_call, fields)
        results = self.agent.messages[before:]
        self.guard.on_block_ended(
            name, arguments, [result.get("content") for result in results], bool(failure_of(results))
        )
        self.is_done = self.is_done or self.is_cancelled()

    # -- a block -------------------------------------------------------------------------------------------------

    def _block(self, language: str, code: str) -> Generator[Step]:
        self._just_installed = False
        refusal = self.guard.refusal(language, code)
        if refusal is not None:
            if refusal.final:
                self._end("limit" if self.guard.exhausted else "repetition")
            yield decision("denied", "limit" if self.guard.exhausted else "guard", refusal.words)
            yield from self._say(" ".join(filter(None, [refusal.words, self._missing])) + "\n", refusal.failed)
            if refusal.failed and self.stuck.on_block_refused():
                self.is_done, self.ending = self.guard.exhausted, "limit" if self.guard.exhausted else ""
            return
        agent = self.agent
        if agent.computer.get_language(language) is None:
            if self.guard.repeats(language, code):
                self._end("repetition")
            self.guard.on_block_ended(language, code, [])
            yield from self._say(f"{unknown_language(language, agent.runtimes.available())}\n")
            return
        last = agent.messages[-1] if agent.messages else None
        is_code = last is not None and last["role"] == "assistant" and last["type"] == "code"
        block = Block(language, code, last if is_code else None)
        before = len(agent.messages)
        self._changed = None
        yield from self._performed(block)
        review = block.review
        if review is not None and review.denied is not None:
            self.guard.on_block_ended(language, code, [review.denied], failed=True)
            yield from self._say(f"{review.denied}\n", failed=True)
        elif review is not None and review.declined:
            yield from self._decline(review)
        elif self.is_cancelled() and not block.outcome:
            self.is_done = True
        else:
            outputs = agent.messages[before:]
            failure = failure_of(outputs)
            results = [message.get("content") for message in outputs]
            self.guard.on_block_ended(block.language, block.code, results, failure is not None)
            installs = only_installs(block.language, block.code)
            self._only_installed = installs and self._only_installed is not False
            self._just_installed = installs and failure is None
            self.is_done = self.is_done or self.is_cancelled()
            self.stuck.on_block_ended(failure)
            for action in agent.follow_ups(block) if failure is None and not self.is_done else ():
                yield from self._performed(action)
            if failure is None and not installs and agent.llm.profile.tells_files:
                self._tell_files()

    def _performed(self, action: Action, fields: Chunk | None = None) -> Generator[Step]:
        """Perform the action, and add the observers' chunks at its end. All its chunks get these fields."""
        agent, publisher = self.agent, self._publisher
        publisher.fields = fields or {}
        performance = agent.session.perform(action, agent.actor, publisher=publisher)
        with closing(performance):
            for event in performance:
                chunk: Chunk = event.chunk or {}
                match chunk:
                    case {"type": "status", "format": "files"}:
                        self._changed, self._changed_any = chunk["content"], True
                        for each in chunk["content"].get("changed", ()):
                            self._answer_check.written.add(each["path"])
                            if each["what"] != "touched" or each["path"] not in self._untold:
                                self._untold[each["path"]] = each
                    case {"type": "status", "format": "call"}:
                        for observer in self._observers:
                            observer.called(chunk["content"])
                for observer in self._observers if "ended" in chunk else ():
                    yield from observer.after_block()
                    if observer.is_stuck:
                        self._end("no effect")
                yield event
        publisher.fields = {}

    def _tell_files(self) -> None:
        """Tell the model which files changed, where it would not check."""
        agent = self.agent
        if agent.timeline.files.record() is None:
            return
        words = self._answer_check.request
        # A block that failed may have written files, too.
        last, changes = self._changed or {}, list(self._untold.values())
        folder, self._untold = str(agent.settings.workspace), {}
        if note := file_change_note(changes, folder):
            missing = "" if self._told_columns else missing_content(words, changes, folder)
            self._note("\n".join(filter(None, (note, missing))))
            if missing:
                self._told_columns, agent.messages[-1]["ended"] = True, "unfinished"
        elif not (self._changed_any or last.get("off") or last.get("not_covered")) and asks_for_change(words):
            self._changed_any = True  # say it once
            self._note(NOTHING_CHANGED)["ended"] = "unfinished"

    def _note(self, text: str) -> Message:
        """Tell the model something together with the last output; what was printed stays as it is."""
        messages = self.agent.messages
        if not messages or messages[-1]["role"] != "computer" or messages[-1]["type"] != "console":
            messages.append({"role": "computer", "type": "console", "format": "output", "content": ""})
        messages[-1]["note"] = "\n".join(filter(None, (messages[-1].get("note"), text)))
        return messages[-1]

    def _decline(self, review: BlockReview) -> Generator[Chunk]:
        """Tell the model that the block did not run, and why if that is known."""
        messages = self.agent.messages
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
