"""Sub-agents: each works in a sandboxed fork of the session, within the limits of its tree.

What it leaves is a value, and changes of files that someone accepts or drops.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from interpreter.agents.asking import Form
from interpreter.api import OpenInterpreter
from interpreter.app.forks import Fork, fork
from interpreter.computer_api.tool import names, present
from interpreter.console_text import counted, visible
from interpreter.errors import ComputerError, LimitReachedError, UsageError
from interpreter.host.files import remove
from interpreter.host.memory import available_megabytes
from interpreter.llm.usage import Usage, in_dollars
from interpreter.questions import APPROVE, REFUSE, Answer, Confirm, Question, QuestionKind, RunBlock, Subject
from interpreter.session import Action, ActionContext, Actor, Permissions
from interpreter.tools.tool import FileEdit
from interpreter.workspace.diff import Changes
from interpreter.workspace.merge import merge, merge_steps
from interpreter.workspace.tree import alike

if TYPE_CHECKING:
    from collections.abc import Generator

    from interpreter.agent.agent import Agent
    from interpreter.agent.turn import Turn
    from interpreter.messages import Chunk
    from interpreter.session import Event

ALL_KINDS: tuple[QuestionKind, ...] = ("block", "call", "text", "password", "confirm", "choose", "overwrite")
MAX_LINE = 200  # characters of the last line of a sub-agent
GRACE = 10.0  # seconds that one has to end after it was stopped
IN_SANDBOX = ("ai", "files", "docs", "skills", "vision")  # parts of the computer that work inside the sandbox

TASK = """You are a sub-agent now. Your task:

{task}

You work in a copy of the workspace: {workspace}. The variables are copies, too.{data} Nobody reads along: do the \
task without asking back, and end with the result as your last message.{form}"""
DATA = " What the task is about is in the variable `data`, {about}."
LOAD = "import base64, pickle\ndata = pickle.loads(base64.b64decode({pickled!r}))"
LOAD_JSON = "import json\ndata = json.loads({text!r})"
AGAIN = "That is not the result: {problem} Answer with the result alone.{form}"


class SubAgentError(ComputerError):
    """A sub-agent has no result."""


@dataclass(frozen=True)
class Task:
    """The task of a sub-agent, and its limits."""

    text: str
    schema: Mapping[str, Any] | None = None
    model: str | None = None
    tools: Collection[str] | None = None  # beside those that only read
    data: Mapping[str, str] | None = None  # `pickled` or `json`, and `about`
    budget: float | None = None
    tokens: int | None = None
    seconds: float | None = None
    temperature: float | None = None
    instructions: str = ""  # instead of the session's conversation
    name: str = ""
    # One of several: it gets the text as the user's message, leaves no record, and stays until it is decided about.
    is_try: bool = False

    @property
    def title(self) -> str:
        return visible(next((line for line in self.text.strip().splitlines() if line.strip()), ""))[:MAX_LINE]


# The sub-agents of each agent. The computer of the agent keeps them, and they keep the agent.
_families: WeakKeyDictionary[Agent, ref[SubAgents]] = WeakKeyDictionary()
_making = threading.RLock()


def subagents_of(agent: Agent, starter: SubAgent | None = None) -> SubAgents:
    """Return the sub-agents of an agent; `starter` is the agent's own sub-agent object, if it is one itself."""
    with _making:
        known = _families.get(agent)
        family = known() if known is not None else None
        if family is None:
            family = SubAgents(agent, starter)
            agent.computer.ends_with.append(family.close)
            _families[agent] = ref(family)
        return family


class SubAgents:
    """The sub-agents that one agent has started."""

    def __init__(self, agent: Agent, starter: SubAgent | None = None) -> None:
        self.starter = starter
        self.depth: int = starter.depth + 1 if starter is not None else 1
        self.all: dict[int, SubAgent] = {}
        self.changed = threading.Condition(threading.RLock())
        self.root: SubAgents = starter.family.root if starter is not None else self
        self.count = 0  # of the whole tree, at its root
        self.watchers: list[Callable[[], object]] = []  # told of each change in the tree, at its root
        self._agent = ref(agent)
        self._forking = threading.Lock()
        self._active = 0
        self._actor: Actor | None = None

    @property
    def interpreter(self) -> OpenInterpreter:
        agent = self._agent()
        settings = agent.settings if agent is not None else None
        if not isinstance(settings, OpenInterpreter):
            raise UsageError("Sub-agents need an interpreter.")
        return settings

    @property
    def actor(self) -> Actor:
        """Return the actor for all of the agent's sub-agents, which its budget limits together."""
        if self._actor is None:
            agent, owner = self.interpreter.agent, self.interpreter
            if self.starter is not None:
                self._actor = agent.actor
                return self._actor
            base = owner.llm.usage.cost

            def permissions() -> Permissions:
                most = [owner.agents_budget, None if owner.llm.max_budget is None else owner.llm.max_budget - base]
                limits = [limit for limit in most if limit is not None]
                return Permissions("auto", budget=min(limits, default=None))

            self._actor = owner.session.add_actor("agent", permissions, agent.actor)
            self._actor.budget.owner = "The tree of sub-agents"
        return self._actor

    def start(self, task: Task, put: Callable[[Subject], Answer | None] | None = None) -> SubAgent:
        """Start a sub-agent; `put` sends its questions to its caller. LimitReachedError if the tree is at a limit."""
        owner, root = self.interpreter, self.root
        if self.depth > owner.agents_depth:
            raise LimitReachedError(f"Sub-agents may be {owner.agents_depth} deep (`agents_depth`).")
        with root.changed:
            if root.count >= owner.agents_total:
                raise LimitReachedError(f"The session has had {owner.agents_total} sub-agents (`agents_total`).")
            root.count += 1
            number = root.count
        child = SubAgent(number, task, self, put)
        with self.changed:
            self.all[number] = child
        child.thread.start()
        return child

    def get(self, number: int) -> SubAgent:
        """Find a sub-agent in this tree by its number."""
        for each in self.walk():
            if each.number == number:
                return each
        raise UsageError(f"There is no sub-agent {number}.")

    def walk(self) -> Iterator[SubAgent]:
        """Yield those of this agent, each followed by its own."""
        for each in list(self.all.values()):
            yield each
            if each.family_below is not None:
                yield from each.family_below.walk()

    @property
    def used(self) -> Usage:
        """Return what those that have not been counted by this agent have used."""
        return sum((each.used for each in list(self.all.values()) if not each.is_counted), Usage())

    def tell(self) -> None:
        """Return something has changed."""
        with self.changed:
            self.changed.notify_all()
        for watch in list(self.root.watchers):
            watch()

    def enter(self, child: SubAgent) -> None:
        """Wait until the limit of `agents_at_once` lets this sub-agent run."""
        with self.changed:
            ready = self.changed.wait_for(
                lambda: child.stopping or self._active < self.interpreter.agents_at_once, child.seconds_left
            )
            child.end_if_stopped()
            if not ready:
                raise SubAgentError("It did not begin in time, because others were running.")
            self._active += 1

    def leave(self) -> None:
        with self.changed:
            self._active -= 1
            self.changed.notify_all()

    def fork(self, child: SubAgent) -> OpenInterpreter:
        """Make a fork for one of them, in a separate sandbox; an error where sandboxes don't work."""
        owner, task = self.interpreter, child.task
        free = available_megabytes()
        if free is not None and free < owner.agents_memory:
            raise LimitReachedError(f"Only {free:,} MB of memory are free; a sub-agent needs {owner.agents_memory:,}.")
        sandbox = owner.sandbox_now()
        memory = min(filter(None, [owner.agents_memory, owner.sandbox_memory]))
        settings: dict[str, Any] = {
            "sandbox": sandbox.kind if sandbox is not None else "workspace",
            "sandbox_paths": [*owner.sandbox_paths, owner.workspace],  # to read: links lead there
            "sandbox_memory": memory,
            "question_timeout": child.seconds_left,
            "preview": False,
        }
        if task.is_try:
            settings["conversation_history"] = False
        if task.instructions:
            settings |= {"system_message": task.instructions, "custom_instructions": ""}
        with self._forking:  # the snapshots of a runtime are copied one by one
            made = fork(owner, started_by=child.actor, settings=settings)
        made.agent.keep_tools()
        if task.instructions:
            made.messages = []
        else:
            made.prompt.rendered = dict(owner.prompt.rendered)  # the provider has cached what it has read
        for name, value in made.llm.settings_for(task.model).items() if task.model else ():
            setattr(made.llm, name, value)
        if task.temperature is not None:
            made.llm.temperature = task.temperature
        return made

    def stop(self) -> None:
        """Stop all that run, and wait until they have ended."""
        running = [each for each in list(self.all.values()) if not each.done.is_set()]
        for each in running:
            each.stop()
        for each in running:
            if each.thread is not threading.current_thread():
                each.done.wait(GRACE)

    def close(self) -> None:
        """Return the session ends: so do they. Changes that no one has decided about are kept as a patch."""
        self.stop()
        for each in list(self.all.values()):
            each.put_away()


class SubAgent:
    """A sub-agent. It waits until it may run, works in a fork, and ends with a value or an error, and changes."""

    def __init__(
        self, number: int, task: Task, family: SubAgents, put: Callable[[Subject], Answer | None] | None
    ) -> None:
        self.number, self.task, self.family = number, task, family
        self.depth: int = family.depth
        self.state = "waiting"  # waiting, running, asking, done, failed, stopped
        self.last = ""  # the last line of what it did
        self.value: Any = None
        self.error: BaseException | None = None
        self.interpreter: OpenInterpreter | None = None  # while it runs
        self.fork: Fork | None = None  # its files, until they are accepted or dropped
        self.changes = Changes("agent")
        self.fate = ""  # of its changes: accepted, dropped or saved
        self.question: Question | None = None
        self.family_below: SubAgents | None = None
        self.journal: Path | None = None
        self.conversation = ""  # its id, for --resume
        self.messages: list[Any] = []
        self.first_message = 0  # the number of messages that it began with
        self.is_counted = False
        self.stopping = ""  # why it is to end
        self.done = threading.Event()
        self.ready = threading.Event()  # a try has its value, and can be looked at
        self.decided = threading.Event()  # a try may end
        self.began, self.ended = time.monotonic(), 0.0
        owner = family.interpreter
        above = family.starter.seconds_left if family.starter is not None else float("inf")
        self._ends_at = self.began + min(task.seconds or owner.agents_seconds, owner.agents_seconds, above)
        allowed = Permissions("auto", tools=allowed_tools(owner, task.tools), budget=task.budget)
        self.actor = family.actor.child("agent", allowed)
        self.actor.budget.owner = f"Sub-agent {number}"
        self._put, self._base, self._final = put, Usage(), Usage()
        self._turn: Turn | None = None
        self._form = Form(task.schema)
        self.thread = threading.Thread(target=self._run, name=f"sub-agent {number}", daemon=True)

    # -- what others see -------------------------------------------------------------------------------------------

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._ends_at - time.monotonic())

    @property
    def used(self) -> Usage:
        """Return the usage of this sub-agent and of those that it has started."""
        made = self.interpreter
        if made is None:
            return self._final
        below = self.family_below.used if self.family_below is not None else Usage()
        return difference(made.llm.usage, self._base) + below

    def tokens_left(self) -> int | None:
        """Return how many more tokens it may use; None without a limit."""
        own = None if self.task.tokens is None else self.task.tokens - self.used.tokens
        above = self.family.starter.tokens_left() if self.family.starter is not None else None
        if self.family.starter is None and (limit := self.family.interpreter.agents_tokens) is not None:
            above = limit - sum(each.used.tokens for each in list(self.family.all.values()))
        limits = [limit for limit in (own, above) if limit is not None]
        return max(0, min(limits)) if limits else None

    def line(self) -> str:
        """Return the sub-agent's state, cost and last line."""
        used, end = self.used, self.ended or time.monotonic()
        state = f"{self.state}: {self.stopping}" if self.state == "stopped" and self.stopping else self.state
        facts = [state, f"{end - self.began:.0f} s", f"{used.tokens:,} tokens"]
        facts += [in_dollars(used.cost)] if used.cost else []
        facts += [counted(len(self.changes.pairs), "changed file") + (f" {self.fate}" if self.fate else "")] * bool(
            self.changes
        )
        said = str(self.error) if self.error is not None and self.state == "failed" else self.last
        return f"{self.number} {self.task.name or self.task.title[:50]} · {' · '.join(facts)}" + (
            f" · {visible(said)[:MAX_LINE]}" if said else ""
        )

    def result(self, seconds: float | None = None) -> Any:
        """Wait for its value; its error is raised. SubAgentError if it takes longer."""
        limit = self.seconds_left + GRACE + 5
        if not self.done.wait(limit if seconds is None else min(seconds, limit)):
            if seconds is not None and self.seconds_left:
                raise SubAgentError(f"Sub-agent {self.number} is still running.")
            raise SubAgentError(f"Sub-agent {self.number} was stopped, but does not end.")
        self.raise_error()
        return self.value

    def raise_error(self) -> None:
        if self.error is not None:
            raise SubAgentError(f"Sub-agent {self.number}: {self.error}") from self.error

    @property
    def new_messages(self) -> list[Any]:
        """Return the sub-agent's part of the conversation."""
        made = self.interpreter
        return list((made.messages if made is not None else self.messages)[self.first_message :])

    def wait_for_fork(self) -> None:
        """Wait until it has its copy of the session; its error is raised if it gets none."""
        with self.family.changed:
            self.family.changed.wait_for(
                lambda: self.interpreter is not None or self.done.is_set(), self.seconds_left + GRACE
            )
        self.raise_error()

    def wait_until_ready(self) -> None:
        """Wait until a try has a value or an error. Ctrl-C stops it."""
        try:
            self.ready.wait(self.seconds_left + GRACE)
        except KeyboardInterrupt:
            self.stop("by you")
            raise

    def conflicts(self) -> dict[str, list[int]]:
        """Return which others have changed the files whose fate is open, and were not dropped."""
        if self.fork is None:
            return {}
        others = [each for each in self.family.all.values() if each is not self and each.fate != "dropped"]
        clashes = {path: [each.number for each in others if path in each.changes.pairs] for path in self.changes.pairs}
        return {path: numbers for path, numbers in clashes.items() if numbers}

    def diffs(self) -> dict[str, str]:
        """Return the sub-agent's changes to its copy of the workspace, as diffs by path."""
        return self.changes.diffs(self.fork.record.content) if self.fork is not None else {}

    def edits(self) -> list[FileEdit | str]:
        """Return what accepting its changes would do."""
        if self.fork is None:
            return []
        edits: list[FileEdit | str] = []
        for path, pair in sorted(self.changes.pairs.items()):
            before, after = (b"" if item is None else self.fork.record.content(item) for item in pair)
            try:
                edits.append(FileEdit(path, (before or b"").decode(), (after or b"").decode()))
            except UnicodeDecodeError:
                edits.append(f"{'Delete' if pair[1] is None else 'Write'} {path}")
        return edits

    # -- what becomes of its changes -------------------------------------------------------------------------------

    def accept(self, overwrite: Collection[str] = ()) -> list[str]:
        """Merge its changes into the original workspace. Returns the files that were changed there, too."""
        made = self.fork
        if made is None:
            raise UsageError(f"Sub-agent {self.number} has no changes to accept.")
        target = made.parent.timeline.files.required_record()
        steps = merge_steps(made.base, made.record, target.snapshot)
        written = merge(steps, made.record.store, target.snapshot.folder, overwrite)
        kept = [each.path for each in (*written.kept, *written.failed)]
        if not kept:
            self.settle_files("accepted")
        return kept

    def settle_files(self, fate: str) -> None:
        """Note that its changes were accepted or discarded, and delete its copy of the files."""
        made, self.fork, self.fate = self.fork, None, fate if self.changes else ""
        if made is not None:
            remove(made.folder)
        self.family.tell()

    def put_away(self) -> None:
        """Keep undecided changes as a patch beside its conversation."""
        if self.fork is not None and self.journal is not None and self.journal.exists():
            with suppress(OSError):
                (self.journal / "changes.patch").write_text("\n".join(self.diffs().values()), encoding="utf-8")
        self.settle_files("saved as a patch")

    # -- its life --------------------------------------------------------------------------------------------------

    def end_if_stopped(self) -> None:
        """Raise an error if it is to end."""
        if self.stopping:
            raise SubAgentError(f"It was stopped: {self.stopping}.")

    def stop(self, why: str = "cancelled") -> None:
        """Stop this sub-agent and everything it started. Can be called from any thread."""
        self.stopping = self.stopping or why
        self.family.tell()
        if self.family_below is not None:
            for each in list(self.family_below.all.values()):
                each.stop(why)
        made, turn = self.interpreter, self._turn
        if made is not None:
            if turn is not None:
                made.session.cancel(turn)
            made.cancel()

    def answer(self, text: str) -> None:
        """Answer the question that this sub-agent asks."""
        question = self.question
        if question is None or not question.is_open:
            raise UsageError(f"Sub-agent {self.number} asks nothing.")
        choice = {"yes": APPROVE, "y": APPROVE, "no": REFUSE, "n": REFUSE}.get(text.lower(), text)
        question.settle(Answer(choice) if choice in (*question.choices, REFUSE) else Answer("answer", text))

    def _run(self) -> None:
        entered = False
        try:
            self.family.enter(self)
            entered = True
            self.state = "running"
            made = self.family.fork(self)
            self._base = made.llm.usage
            self.interpreter, self.fork = made, made.forked
            self.first_message = len(made.messages)
            self.family.tell()
            self.family_below = subagents_of(made.agent, self)
            self.end_if_stopped()
            self._share_tokens()
            with made.session.questions.answerable(ALL_KINDS), made.session.questions.answerable(ALL_KINDS, self._ask):
                self.value = self._work(made)
            self.state = "done"
            if self.task.is_try:
                self.family.leave()
                entered = False
                self.ready.set()
                self.family.tell()
                self.decided.wait(self.seconds_left)
        except BaseException as error:  # noqa: BLE001 - raised where its result is asked for
            self.error = error
            self.state = "stopped" if self.stopping else "failed"
        finally:
            self.ready.set()
            try:
                self._end()
            except Exception as error:  # noqa: BLE001 - as above
                self.error, self.state = self.error or error, "failed"
            if entered:
                self.family.leave()
            self.ended = time.monotonic()
            self.done.set()
            self.family.tell()

    def _work(self, made: OpenInterpreter) -> Any:
        task, form, data = self.task, self._form, self.task.data
        if data is not None:
            code = LOAD.format(pickled=data["pickled"]) if "pickled" in data else LOAD_JSON.format(text=data["json"])
            output = made.computer.run("python", code)
            if text := "".join(str(each["content"]) for each in output if each["type"] == "console"):
                raise SubAgentError(f"`data` could not be given to it: {text[-1000:]}")
        instruction = f"\n\n{form.instruction}" if form.instruction else ""
        about = DATA.format(about=data["about"]) if data is not None else ""
        message: Any = TASK.format(task=task.text, workspace=made.workspace, data=about, form=instruction)
        if task.is_try:
            message = task.text or made.messages  # without a text, it continues the conversation
        for _ in range(2):
            text = self._respond(made, message)
            try:
                return form.read(text)
            except ValueError as problem:
                failure = f"Its result doesn't fit the schema: {problem}"
                message = AGAIN.format(problem=str(problem).capitalize(), form=instruction)
        raise SubAgentError(failure)

    def _respond(self, made: OpenInterpreter, message: Any) -> str:
        """Send the sub-agent a message and return its answer. Raises an error if the turn ends without an answer."""
        self._turn = turn = made.agent.turn(message)
        started = made.session.start(turn, made.agent.actor, self._read)
        if self.stopping:  # before there was a turn to cancel
            made.session.cancel(turn)
        if not started.wait(self.seconds_left):
            self.stop("its time is over")
            started.wait(GRACE)
        self.end_if_stopped()
        started.result(0)
        answer = made.messages[-1] if made.messages else {}
        text = str(answer.get("content", "")).strip()
        if turn.ending not in ("answered", "unfinished"):
            raise SubAgentError(f"It ended without a result ({turn.ending}).")
        if answer.get("role") != "assistant" or answer.get("type") != "message" or not text:
            raise SubAgentError("It ended without a result.")
        return text

    def _read(self, events: Iterator[Event]) -> None:
        text = ""
        for event in events:
            chunk = event.chunk
            is_text = chunk is not None and chunk["type"] in ("message", "code", "console")
            if chunk is not None and is_text and chunk.get("format") != "active_line":
                text = f"{'' if chunk.get('start') else text}{chunk.get('content') or ''}"[-2000:]
                lines = [line for line in text.splitlines() if line.strip()]
                self.last = visible(lines[-1])[:MAX_LINE] if lines else self.last
                self.family.tell()
            elif event.kind == "action":
                self._share_tokens()
                self.family.tell()

    def _share_tokens(self) -> None:
        """Share the remaining tokens of the tree: each agent in it may use them all."""
        for each in self.family.root.walk():
            made, left = each.interpreter, each.tokens_left()
            if made is not None and left is not None:
                made.llm.max_budget_tokens = made.llm.usage.tokens + left

    def _ask(self, question: Question) -> Answer | None:
        """Have whoever waits for it answer; without them, the question stays open for `%agents`."""
        self.question, self.state = question, "asking"
        self.family.tell()
        if self._put is None:
            return None
        subject, name = question.subject, f"Sub-agent {self.number}"
        if isinstance(subject, RunBlock):
            subject = Confirm(f"{name} wants to run this {subject.language}:\n{visible(subject.code)}\nRun it?")
        elif question.kind == "call":
            subject = Confirm(f"{name}: {question.text}")
        try:
            answer = self._put(subject)
        finally:
            self.state = "running"
        return answer if answer is not None else Answer(REFUSE, by="nobody")

    def _end(self) -> None:
        made = self.interpreter
        if made is None:
            return
        if self.family_below is not None:
            self.family_below.stop()
        self.question = None
        self.messages = list(made.messages)
        made.computer.terminate()
        self.journal, self.conversation = made.journal.path, made.journal.id or ""
        made.journal.close()
        made.session.close()
        self._final = self.used
        if self.fork is not None:
            self.fork.record.prepare()
            base, now = self.fork.base, self.fork.record.items
            pairs = {path: (base.get(path), now.get(path)) for path in {*base, *now}}
            self.changes = Changes("agent", {path: pair for path, pair in pairs.items() if not alike(*pair)})
        self.interpreter = None
        owner = self.family.interpreter
        with self.family.changed:
            owner.llm.count(self._final)
            self.is_counted = True
        made.forked = None
        if not self.changes:
            self.settle_files("")


class Accept(Action):
    """Bring the changes of a sub-agent into the workspace, as an action that can be undone."""

    kind = "accept"
    covered = True

    def __init__(self, child: SubAgent, overwrite: Collection[str] = ()) -> None:
        super().__init__()
        self._child, self._overwrite = child, overwrite

    def describe(self) -> str:
        return f"the changes of sub-agent {self._child.number} are accepted"

    def run(self, context: ActionContext) -> Generator[Chunk]:
        self.result = self._child.accept(self._overwrite)
        self.outcome = "done"
        yield from ()


def allowed_tools(owner: OpenInterpreter, named: Collection[str] | None) -> frozenset[str]:
    """List the tools that a sub-agent may call: those that only read, those inside its sandbox, and those named."""
    parts = [part for part in present() if part in IN_SANDBOX]
    contained = {f"computer.{part}.{name}" for part in parts for name in names(getattr(owner.computer, part))}
    reading = {tool.name for tool in owner.tools if tool.policy == "reads"}
    reading |= {tool.name for tool in owner.agent.code_tools}  # they reach the model, and copies of the session
    unknown = [name for name in named or () if name not in {tool.name for tool in owner.tools}]
    if unknown:
        raise UsageError(f"There is no tool named {unknown[0]!r}.")
    return frozenset({"execute", *reading, *contained, *(named or ())})


def difference(now: Usage, before: Usage) -> Usage:
    """Return what was used since."""
    numbers = {
        each.name: getattr(now, each.name) - getattr(before, each.name)
        for each in fields(Usage)
        if each.name != "estimated"
    }
    return Usage(**numbers, estimated=now.estimated)
