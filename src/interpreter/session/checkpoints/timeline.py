"""The timeline of a session: its checkpoints in order, which of them are in force, and how to return to one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from interpreter.console_text import counted
from interpreter.errors import BusyError, UndoError
from interpreter.messages import notice
from interpreter.session import ACTION, Action, Block
from interpreter.session.checkpoints.checkpoint import (
    PARTS,
    Checkpoint,
    Conversation,
    FolderPlan,
    Kind,
    Part,
    UndoKind,
    UndoPlan,
    UndoResult,
    VariablesPlan,
    begins_request,
    label_of,
    last_request,
    undone_in_words,
)
from interpreter.session.checkpoints.file_store import ELSEWHERE, OFF_ON_WINDOWS, FileStore
from interpreter.session.checkpoints.variables import SavedVariables
from interpreter.sigint import Hold

if TYPE_CHECKING:
    from interpreter.agent.agent import Agent
    from interpreter.messages import Chunk, Message
    from interpreter.runtimes.state import Mark
    from interpreter.session import Actor
    from interpreter.session.journal import SavedSession
    from interpreter.workspace import Changes, FileRecord, RestorePlan

MAX_CHECKPOINTS = 2_000  # checkpoints that can be returned to; the journal has them all
_SHOW_COST_FROM = 1.0  # seconds: the cost of a first copy of the workspace that took longer is shown
OUT_OF_DATE = "This plan is out of date. Make a new one."

Method = TypeVar("Method", bound=Callable[..., Any])


def _locked(method: Method) -> Method:
    """Hold the lock: a turn begins without the session's lane, while blocks of others run or are undone."""

    @wraps(method)
    def locked(self: Timeline, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return method(self, *args, **kwargs)

    return cast(Method, locked)


class Timeline:
    """Knows the moment before each turn and each block, and returns to it.

    The conversation, the files and the variables each have their place on the timeline: normally its end. An undo moves
    them back, a redo forward. What comes next begins where they are, and what was behind it is forgotten.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.agents: dict[str, Agent] = {}  # those that act in the session, by actor
        self._lock = threading.RLock()
        self.checkpoints: list[Checkpoint] = []
        self.places: dict[Part, int] = dict.fromkeys(PARTS, 0)
        self.files = FileStore(agent)
        self.variables = SavedVariables(agent)
        self._conversation = Conversation(agent)
        self._conversations = {id(agent): self._conversation}  # its own, and of those that share the computer
        self._newest = 0  # the id of the checkpoint that was made last
        self._latest: Mark | None = None  # the state of the runtimes before an undo
        self._running: Checkpoint | None = None  # the block that runs
        self.stamp = 0  # changes with everything that happens: a plan with another stamp is out of date
        self._forgot = False  # checkpoints that were too old
        self._news: list[str] = []  # for the model

    # -- what happens --------------------------------------------------------------------------------------------

    @_locked
    def tell_model(self, by: Agent) -> None:
        """Say before the user's new message, which is in the messages already, what else was undone."""
        self._collect_news()
        news, self._news = self._news, []
        if news:
            messages = by.messages
            at = last_request(messages)
            if any(message.get("role") != "user" for message in messages[at:]):
                at = len(messages)
            messages.insert(at, {"role": "computer", "type": "message", "content": "\n".join(news)})
            by.last_messages_count += 1

    @_locked
    def begin_turn(self, by: Agent) -> None:
        at = last_request(by.messages)
        self._add("turn", at, label_of(by.messages[at].get("content")) if at < len(by.messages) else "", by)
        self._note_keepers()

    @_locked
    def conversation_of(self, by: Agent) -> Conversation:
        """Return the conversation of an agent that acts in this session."""
        return self._conversations.setdefault(id(by), Conversation(by))

    @property
    def conversations(self) -> list[Conversation]:
        """Return all conversations of this session, its own first."""
        return list(self._conversations.values())

    def _agent_of(self, actor: Actor | None) -> Agent:
        """Find the agent whose conversation an actor's actions belong to."""
        chain = actor.chain() if actor is not None else ()
        return next((self.agents[each.id] for each in chain if each.id in self.agents), self._agent)

    def before(self, action: Action) -> list[Chunk]:
        """Prepare for an action that can be undone; return notices for the user."""
        by = self._agent_of(action.actor)
        language, code = (action.language, action.code) if isinstance(action, Block) else (action.kind, "")
        notices = self.before_block(language, code or action.describe(), bool(action.turn), by)
        if self._running is not None:
            self._running.doer = action.actor
        return notices

    @_locked
    def before_block(self, language: str, code: str, in_turn: bool = False, by: Agent | None = None) -> list[Chunk]:
        """Prepare for a block; return notices for the user."""
        by = by or self._agent
        last = by.messages[-1] if by.messages else None
        is_code = last is not None and last.get("type") == "code" and last.get("content") == code
        checkpoint = self._add("block" if in_turn else "own", len(by.messages) - is_code, label_of(code), by)
        checkpoint.language, checkpoint.mark = language, self._agent.computer.mark()
        checkpoint.block = by.journal.block if in_turn else None
        record = self.files.record()
        checkpoint.workspace = self.files.root if record is not None else None
        self._agent.journal.write("point", **checkpoint.fields)
        self._note_keepers()
        self._running = checkpoint
        is_unexpected = self._agent.settings.undo_files and self.files.off not in ("", OFF_ON_WINDOWS, ELSEWHERE)
        notices = [self.files.off] if is_unexpected else []
        if record is not None:
            coverage = record.before(checkpoint.id)
            notices = coverage.sentences
            if coverage.copied_files and coverage.seconds >= _SHOW_COST_FROM:
                notices.append(coverage.cost + ".")
        return [notice(text) for text in notices]

    def _note_keepers(self) -> None:
        folder = self._agent.journal.path
        if self._agent.computer.machines and folder is not None:
            with suppress(OSError):  # the journal says that nothing can be saved
                self._agent.computer.note_machines(folder)

    @_locked
    def after(self, action: Action | None = None) -> list[Chunk]:
        """Note the end of an action, for any reason. Returns chunks about its changes to files."""
        checkpoint, self._running = self._running, None
        if checkpoint is None:
            return []
        record = self.files.record()
        changes = record.after(checkpoint.id) if record is not None else None
        if record is None or changes is None or not (changes.pairs or changes.not_covered):
            return []
        fields = changes.fields_with_data(record.content, self.read_tables)
        self._agent.journal.write("files", **fields, journal_block=checkpoint.block)
        return [{"type": "status", "format": "files", "content": fields}]

    @_locked
    def reset(self) -> None:
        """Forget every checkpoint: a new conversation begins."""
        self.files.close()
        self.checkpoints, self._latest, self._running, self._news = [], None, None, []
        self._conversations = {id(self._agent): self._conversation}
        self._conversation.tail = []
        self.places = dict.fromkeys(PARTS, 0)
        self._forgot = False
        self.stamp += 1

    @_locked
    def resume(self, saved: SavedSession) -> None:
        """Continue with the checkpoints of an earlier run: its conversation and its files can be undone."""
        self.reset()
        self.variables.resume(saved)
        if self._agent.computer.machines:
            self._agent.computer.take_over_machines(saved.path)
        self.checkpoints = [Checkpoint.from_fields(entry) for entry in saved.points]
        self._newest = max((each.id for each in self.checkpoints), default=0)
        self.places = dict.fromkeys(PARTS, self.present)
        self._conversation.tail = saved.undone_messages
        whole, gone = self._conversation.whole(), Conversation(self._agent)
        for each in self.checkpoints:
            if each.actor:
                each.conversation = gone  # of an interpreter that shared the computer: its messages are not here
            else:
                each.anchor = whole[each.at] if each.at < len(whole) else None
        for part, to in saved.rewound.items():
            if to is not None:  # the journal may not know it: checkpoints of a conversation that came from elsewhere
                self.places[cast(Part, part)] = sum(each.id < to for each in self.checkpoints)
        self._forget_oldest()

    # -- where to ------------------------------------------------------------------------------------------------

    @property
    def present(self) -> int:
        """Return the place behind the last checkpoint: now, when nothing is undone."""
        return len(self.checkpoints)

    @property
    def blocks(self) -> list[Checkpoint]:
        """Return the blocks whose files are in force, oldest first."""
        return [each for each in self.checkpoints[: self.places["files"]] if each.kind != "turn"]

    def place_of(self, checkpoint: int) -> int:
        place = self._place(checkpoint)
        if place is None:
            raise UndoError(
                f"There is no checkpoint {checkpoint}. `interpreter.checkpoints` lists them, or `%rewind` in the chat."
            )
        return place

    @_locked
    def destination(
        self, kind: Literal["undo", "redo"], count: int = 1, parts: Collection[Part] = PARTS, blocks: bool = False
    ) -> int:
        """Return the place that is `count` turns, or blocks, before the current one (undo) or after it (redo)."""
        self._find_files()
        if kind == "undo":
            self.adopt()
            candidates = range(max(self.places[part] for part in parts) - 1, -1, -1)
        else:
            candidates = range(min(self.places[part] for part in parts) + 1, self.present + 1)
        ends = [each.kind != "turn" if blocks else each.begins_turn for each in self.checkpoints] + [True]  # now
        places = [place for place in candidates if ends[place]]
        if not places:
            raise UndoError(f"There is nothing to {kind}.")
        if not 0 < count <= len(places):
            raise UndoError(f"Only {counted(len(places), 'step')} can be {kind}ne.")
        return places[count - 1]

    def at(self, to: int, conversation: Conversation | None = None) -> int:
        """Return how many messages a conversation has at a place; by default the session's own."""
        conversation = conversation or self._conversation
        for checkpoint in self.checkpoints[to:]:
            if self._belongs(checkpoint, conversation):
                found = conversation.find(checkpoint)
                return min(checkpoint.at, len(conversation.whole())) if found is None else found
        return len(conversation.whole())

    @_locked
    def adopt(self) -> None:
        """Make checkpoints for requests that came from elsewhere with the conversation."""
        if self._forgot:
            return  # older checkpoints were dropped, not missing
        conversation = self._conversation
        messages, known = conversation.messages, [conversation.find(each) for each in self.checkpoints]
        turns = [at for at in range(len(messages)) if begins_request(messages, at)]
        if all(place is None for place in known):
            for at in turns:
                self._add("turn", at, label_of(messages[at].get("content")), self._agent, elsewhere=True)
        else:
            unknown = [at for at in turns if known[0] is not None and at < known[0]]
            whole, first = conversation.whole(), self.checkpoints[0].id - len(unknown)
            self.checkpoints[:0] = [
                Checkpoint(number, "turn", at, label_of(whole[at].get("content")), anchor=whole[at], elsewhere=True)
                for number, at in enumerate(unknown, first)
            ]
            self.places = {part: place + len(unknown) for part, place in self.places.items()}

    def _place(self, checkpoint: int) -> int | None:
        return next((place for place, each in enumerate(self.checkpoints) if each.id == checkpoint), None)

    # -- the files -----------------------------------------------------------------------------------------------

    def changes(self, checkpoint: int) -> Changes | None:
        """Return what a block changed; None if that is unknown."""
        record = self.files.record()
        return record.changes(checkpoint) if record is not None else None

    def diff(self, checkpoint: int, data: bool = False) -> dict[str, str]:
        """Return a unified diff for each path that a block changed; with `data`, tables as rows, columns and cells."""
        return self.files.required_record().diff(checkpoint, data, self.read_tables)

    def read_tables(self, kind: str, contents: Sequence[bytes | None], seconds: float) -> Any:
        """Return the tables in the contents of an Excel or Parquet file, read where the session is."""
        from interpreter.computer_api.at_session import read_tables

        if self._agent.computer.machine is not None:
            raise ValueError("the file is on another machine")
        return read_tables(self._agent.computer, kind, contents, seconds)

    def drift_diff(self, plan: UndoPlan, path: str) -> str:
        """Return the diff from a file as it is now, changed by another program, to what would be restored."""
        steps = plan.files.steps if plan.files is not None else ()
        return next((self.files.required_record().drift_diff(step) for step in steps if step.path == path), "")

    def why(self, path: str, line: int | None = None) -> Checkpoint | None:
        """Find the block that last changed a file, or one of its lines; None if it was no block of this session."""
        block = self.files.required_record().why(path, line)
        return next((each for each in self.checkpoints if block is not None and each.id == int(block)), None)

    def left_out(self, path: str) -> str | None:
        """Return the reason that an undo would not restore a file of the workspace; None if it would."""
        record = self.files.record()
        if record is None or record.off is not None:
            return "file undo is off"
        from interpreter.workspace.record import NOT_READ_YET

        return record.left_out(path) if self.files.is_read() else NOT_READ_YET

    def _find_files(self) -> None:
        """Update the state of the files from the record, since an interrupted undo may have finished meanwhile."""
        if self._running is not None:
            raise BusyError("A block is running. Wait for it to finish or stop it, then undo.")
        record = self.files.record()
        if record is None:
            return
        record.settle()
        here = self.places["files"]
        limit = self._first_id(here)
        if any(int(block) >= limit for block in record.blocks[-1:]):
            place = self._place(int(record.blocks[-1]))
            self.places["files"] = here if place is None else place + 1
        elif (ahead := self._ahead(record)) and int(ahead[0]) < limit:
            place = self.place_of(int(ahead[0]))
            self.places["files"] = place - (place > 0 and self.checkpoints[place - 1].kind == "turn")

    def _ahead(self, record: FileRecord) -> list[str]:
        """Return the blocks whose files can be redone; the record keeps others until the next block runs."""
        known = {each.id for each in self.checkpoints}
        return [block for block in record.undone if int(block) in known]

    def _first_id(self, place: int) -> int:
        """Return the lowest id of blocks behind a place."""
        return self.checkpoints[place].id if place < self.present else self._newest + 1

    # -- planning ------------------------------------------------------------------------------------------------

    @_locked
    def plan(self, to: int, parts: Collection[Part] = PARTS, kind: UndoKind = "restore") -> UndoPlan:
        """Plan a return to a checkpoint. In an undo or redo, parts that have already passed it stay."""
        self._find_files()
        stays = {"undo": int.__le__, "redo": int.__ge__, "restore": int.__eq__}[kind]
        chosen = tuple(part for part in PARTS if part in parts and not stays(self.places[part], to))
        back = all(self.places[part] > to for part in chosen)
        ends = [self.places[part] for part in chosen] or [to]
        passed = tuple(self.checkpoints[to : max(ends)] if back else self.checkpoints[min(ends) : to])
        notes: list[str] = []
        files = self._plan_files(to, passed, notes) if "files" in chosen else None
        repositories = self._agent.plan_repositories(files) if files is not None and files.repositories else None
        if repositories is not None:
            files = repositories.files
            notes += repositories.notes
        marks = (each.mark for each in self.checkpoints[to:] if each.mark is not None)  # as before the next block
        mark = next(marks, self._latest) if "variables" in chosen else None
        variables = tuple(self._plan_variables(mark, passed)) if mark is not None else ()
        if "variables" in chosen and any(each.kind != "turn" and each.mark is None for each in passed):
            notes.append(
                "Variables from an earlier run of the session can't be restored, but you can run its blocks again."
            )
        messages: list[Message] = []
        for conversation in self.conversations if "conversation" in chosen else ():
            here, tail = conversation.messages, conversation.tail
            if conversation.changed:
                notes.append("The conversation has changed since, so its undone messages can't be restored.")
            at = self.at(to, conversation)
            messages += here[at:] if at <= len(here) else tail[: at - len(here)]
        has_code = any(message.get("type") == "code" for message in messages)
        if back and len(chosen) > 1 and any(each.elsewhere for each in passed) and has_code:
            notes.append(
                "Some of these blocks ran before this session loaded the conversation, so their files and variables "
                "stay as they are."
            )
        if "files" in chosen and back:
            registry = self._agent.computer.registry
            notes += dict.fromkeys(words for each in passed for words in each.irreversible(self.files.root, registry))
        target = self.checkpoints[to].id if to < self.present else None
        gone = tuple(messages)
        return UndoPlan(
            to, back, passed, chosen, gone, files, repositories, variables, mark, tuple(notes), self.stamp, target
        )

    def _plan_files(self, to: int, passed: Collection[Checkpoint], notes: list[str]) -> RestorePlan | None:
        record = self.files.record()
        if record is None:
            notes.append(self.files.off)
            return None
        outside = [each for each in passed if each.kind != "turn" and each.workspace != self.files.root]
        for other in dict.fromkeys(each.workspace for each in outside):
            where = f"the workspace was {other} at the time" if other else "file undo was off at the time"
            notes.append(f"Files that some of these blocks changed stay as they are: {where}.")
        if any(each.id <= int(record.forgotten or 0) for each in passed):
            notes.append(
                "Files can only be partly restored: the changes of the oldest of these blocks are no longer stored."
            )
        limit = self._first_id(to)
        behind = [block for block in record.blocks if int(block) >= limit]
        ahead = [block for block in self._ahead(record) if int(block) < limit]
        if not behind and not ahead:
            return None
        plan = record.plan_undo(since=behind[0]) if behind else record.plan_redo(until=ahead[-1])
        notes += [f"{each.path}: {each.why}" for each in plan.not_covered]
        notes += [f"{step.path} cannot be restored: {step.impossible}." for step in plan.steps if step.impossible]
        return plan

    def _plan_variables(self, mark: Mark, passed: Iterable[Checkpoint]) -> Iterable[VariablesPlan]:
        computer = self._agent.computer
        runtimes = computer.runtimes
        for language, state in mark.states.items():
            if runtimes.state(language) != state:
                kept = state in runtimes.runtime(language).points()
                yield VariablesPlan(language, None if kept else "that state is no longer stored")
        for name in dict.fromkeys(each.language for each in passed):
            found = computer.get_language(name) if name else None
            if found is not None and found.name not in mark.states:
                yield VariablesPlan(found.name, "not possible in this language, but you can run its blocks again")

    # -- going there ---------------------------------------------------------------------------------------------

    @_locked
    def go(self, plan: UndoPlan, overwrite: Collection[str] = (), repositories: Collection[str] = ()) -> UndoResult:
        """Carry out the plan. Files that other programs have changed stay, unless they are named in `overwrite`."""
        if plan.stamp != self.stamp:
            raise UndoError(OUT_OF_DATE)
        action = ACTION.get()
        acting = self._agent_of(action.actor if action is not None else None)
        conversations = self.conversations if "conversation" in plan.parts else []
        for each in conversations:  # the messages of another agent are not taken from it while it writes them
            responds = each.agent is not acting and each.agent.responding
            if responds and self.at(plan.to, each) != len(each.messages):
                raise BusyError(f"{each.agent.actor.id} is still responding. Wait for it, or cancel it.")
        self.stamp += 1
        report, variables = None, {}
        if plan.files is not None:
            files, folders = plan.files, plan.repositories or FolderPlan(plan.files)
            record, own = self.files.required_record(), {*repositories, *folders.folders}
            report = folders.carry_out(lambda: record.undo(files, overwrite, own))
            self._agent.computer.runtimes.resend_cwd()
        self._arrive("files", plan)
        with Hold():  # the runtimes and our record of them must change together
            if plan.mark is not None:
                if self._latest is None:  # nothing has moved the runtimes since the last block
                    self._latest = self._agent.computer.mark()
                variables = self._agent.computer.go_back(plan.mark)
            self._arrive("variables", plan)
        for conversation, at in [(each, self.at(plan.to, each)) for each in conversations]:
            conversation.cut(at)
        self._arrive("conversation", plan)
        result = UndoResult(plan, report, variables)
        self._agent.journal.write("rewound", **result.fields)
        return result

    def other_actors(self, plan: UndoPlan, by: Agent, actor: Actor | None) -> set[str]:
        """Name the other actors whose actions a plan undoes or redoes; `actor` does that in the conversation of `by`.

        An agent that is not `by` itself, such as the model of a client, has done only what it did there.
        """
        own, agent = self.conversation_of(by), self._agent.actor
        others = {each.actor or agent.id for each in plan.checkpoints if not self._belongs(each, own)}
        if actor is None or actor.kind != "agent" or actor is by.actor:
            return others
        doers = [each.doer or agent for each in plan.checkpoints]
        return others | {each.id for each in doers if actor not in each.chain()}

    def _arrive(self, part: Part, plan: UndoPlan) -> None:
        if part in plan.parts:
            self.places[part] = plan.to

    # -- new checkpoints -----------------------------------------------------------------------------------------

    def _add(self, kind: Kind, at: int, label: str, by: Agent, elsewhere: bool = False) -> Checkpoint:
        if kind != "turn":
            self._collect_news()
        conversation = self.conversation_of(by)
        # What comes next begins here: what was undone is forgotten.
        here = max(self.places.values())
        dropped = self.checkpoints[here].id if here < self.present else None
        del self.checkpoints[here:]
        own = [each for each in self.checkpoints if self._belongs(each, conversation)]
        if own and own[-1].at > at:
            for each in own:
                each.at = min(each.at, at)
        for other in self.conversations:
            other.tail = []
        self._latest = None
        self._newest += 1
        self.stamp += 1
        checkpoint = Checkpoint(self._newest, kind, at, label, elsewhere=elsewhere)
        if conversation is not self._conversation:
            checkpoint.conversation, checkpoint.actor = conversation, by.actor.id
        # The number of a message changes when others come or go before it.
        if at < len(by.messages):
            checkpoint.anchor = by.messages[at]
        elif by.messages:
            checkpoint.anchor, checkpoint.behind = by.messages[-1], 1
        self.checkpoints.append(checkpoint)
        self.places = dict.fromkeys(PARTS, self.present)
        self._forget_oldest()
        if kind == "turn":
            self._agent.journal.write("point", **checkpoint.fields, drop=dropped)
        elif dropped is not None:
            self._agent.journal.write("points_dropped", drop=dropped, at=at)
        return checkpoint

    def _belongs(self, checkpoint: Checkpoint, conversation: Conversation) -> bool:
        return (checkpoint.conversation or self._conversation) is conversation

    def _forget_oldest(self) -> None:
        """Forget whole turns when there are too many checkpoints, but not each time."""
        if len(self.checkpoints) <= MAX_CHECKPOINTS * 1.1:
            return
        spare = len(self.checkpoints) - MAX_CHECKPOINTS
        turns = (place for place in range(spare, self.present) if self.checkpoints[place].begins_turn)
        first = min(next(turns, spare), *self.places.values())
        del self.checkpoints[:first]
        self.places = {part: place - first for part, place in self.places.items()}
        self._forgot = True

    # -- what the model cannot know ------------------------------------------------------------------------------

    def _collect_news(self) -> None:
        """Note which files and variables were undone without the conversation, before that is forgotten."""
        here = self.places["conversation"]
        if min(self.places.values()) < here:
            files = self.checkpoints[self.places["files"] : here]
            news = undone_in_words(files, self.checkpoints[self.places["variables"] : here], self.files.record())
            if news and news not in self._news:
                self._news.append(news)
