"""OpenInterpreter: the object that scripts use; its settings, its messages and chat()."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable, Collection, Generator
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from interpreter.config.homes import our_folder
from interpreter.config.setting import (
    Given,
    SettingsGroup,
    apply,
    from_environment,
    give_settings,
    given_settings,
)
from interpreter.config.settings import InterpreterSettings
from interpreter.errors import NotPreviewableError, UsageError
from interpreter.leaves import load, methods

if TYPE_CHECKING:
    from interpreter.agent.agent import Agent
    from interpreter.agent.prompt import SystemPrompt
    from interpreter.app.forks import Fork, Merged
    from interpreter.computer_api import Computer
    from interpreter.llm import Llm
    from interpreter.llm.native_tools import NativeTools
    from interpreter.messages import Chunk, Message
    from interpreter.policy.approval import Approver
    from interpreter.policy.pending import Pending
    from interpreter.policy.scan import BlockScanner
    from interpreter.preview.preview import Preview
    from interpreter.runtimes.pool import Outcomes, RuntimePool
    from interpreter.sandbox.containment import Containment
    from interpreter.sandbox.sandbox import Access, Sandbox
    from interpreter.session import Action, Actor, Event, Performance, Permissions, Session
    from interpreter.session.checkpoints import (
        Checkpoint,
        Part,
        Timeline,
        UndoKind,
        UndoResult,
    )
    from interpreter.session.journal import Recorder
    from interpreter.tools import Toolbox


MADE_ON_USE = frozenset({"llm", "computer", "session", "user", "agent", "approver", "scanner"})
OF_THE_AGENT = frozenset({"journal", "timeline", "tools", "prompt", "budget"})


class OpenInterpreter(InterpreterSettings):
    """Sends your messages to a model and runs the code it writes.

    Every setting in docs/settings.md is an argument and an attribute. `messages` is a plain list that you can
    read, assign and change between turns.
    """

    journal: Recorder
    timeline: Timeline
    scanner: BlockScanner
    session: Session
    user: Actor
    agent: Agent
    approver: Approver
    tools: Toolbox
    prompt: SystemPrompt
    forked: Fork | None = None
    _said_responding = False
    started_by: Actor | None = None  # for whom it works: it may do and spend at most what that actor may

    if not TYPE_CHECKING:  # type checkers make the constructor from the declared settings

        def __init__(self, messages=None, llm=None, computer=None, **settings):
            self._begin(messages, llm, computer, settings)

        def __getattr__(self, name):
            if name in OF_THE_AGENT:
                return getattr(self.agent, name)
            if name in methods():
                return partial(load(methods()[name]), self)
            if name not in MADE_ON_USE:
                return super().__getattr__(name)
            with self._making:  # several threads may be the first to ask
                return vars(self)[name] if name in vars(self) else self._make_part(name)

        @property
        def __dict__(self):
            """Return what is stored; for `vars()` in the user's code, with everything that 0.4.3 stores at once."""
            stored = SettingsGroup.__dict__["__dict__"].__get__(self)
            if (
                not sys._getframe(1).f_globals.get("__name__", "").startswith("interpreter.")
                and "_thread_error" in stored
            ):
                for part in (*self.setting_rows, "llm", "computer"):
                    getattr(self, part)
            return stored

        def __setattr__(self, name, value):
            if name == "llm":
                from interpreter.llm import CustomLlm, Llm

                value = value if isinstance(value, Llm) else CustomLlm(self, value)
            super().__setattr__(name, value)

    def _begin(
        self, messages: list[Message] | None, llm: Llm | None, computer: Computer | None, settings: dict[str, Any]
    ) -> None:
        self._making = threading.RLock()
        if messages is not None:
            self.messages = messages
        self._background: threading.Thread | None = None  # a chat with `blocking=False`
        self._thread_error: BaseException | None = None
        if llm is not None:
            self.llm = llm
        if computer is not None:
            self.computer = computer
        apply(self, from_environment(os.environ), "environment")
        apply(self, dict(sorted(settings.items(), key=lambda item: item[0] != "strict_settings")), "code")
        _ = self.workspace  # by default where we are now, wherever the program goes later

    def _make_part(self, name: str) -> Any:
        """Create a part on first use. Printing the version or the settings needs none."""
        part: Any
        match name:
            case "llm":
                from interpreter.llm import Llm

                part = Llm(self)
            case "computer":
                from interpreter.computer_api import Computer

                part = Computer(self)
            case "session":
                part = self._join_session()
            case "user":
                session = self.session  # joining it may have made them
                part = vars(self).get(name) or session.add_actor(
                    "user", self._permissions, sink=lambda: self.journal, contain=self._contain
                )
                part.budget.parent = self.started_by.budget if self.started_by is not None else None
            case "agent":
                session = self.session
                part = vars(self).get(name) or self._make_agent(session)
            case "approver":
                owner = self.computer.interpreter
                part = self._make_approver() if owner in (self, None) else owner.approver
            case _:
                owner = self.computer.interpreter
                is_own = owner in (self, None)
                part = (
                    load("interpreter.scanners:Scanner")(registry=self.computer.registry) if is_own else owner.scanner
                )
        setattr(self, name, part)
        return part

    def _join_session(self) -> Session:
        """Join the session of the other interpreter that shares the computer, or begin a new one."""
        computer = self.computer
        if computer.interpreter is None:
            computer.interpreter = self
        if computer.interpreter is self:
            from interpreter.session import Session

            session = Session(
                lambda: self.timeline, lambda: self.question_timeout, lambda: self.workspace, computer.runtimes_of
            )
            self.session = session
            session.clean, session.approver = self._without_secrets, self.approver
            computer.belong_to(session, self.user)
            computer.contain = containment_for
        self.session = computer.session
        _ = self.user, self.agent  # in the order in which interpreters join
        return self.session

    def _make_agent(self, session: Session) -> Agent:
        from interpreter.agent.agent import Agent

        owner = self.computer.interpreter
        actor = session.add_actor(
            "agent", self._permissions, self.user, sink=lambda: self.journal, contain=self._contain
        )
        timeline = None if owner in (self, None) else owner.timeline
        return Agent(session, self.computer, actor, self, lambda: self.llm, timeline)

    def _without_secrets(self, text: str) -> str:
        from interpreter.llm.secrets import replace_secrets

        return replace_secrets(text, self.llm.known_secrets())[0]

    @property
    def runtimes(self) -> RuntimePool:
        """Return the runtimes that its blocks run in.

        If it shares the computer of an interpreter with another sandbox, these are separate ones.
        """
        return self.computer.runtimes_of(self.user)

    @property
    def native_tools(self) -> NativeTools | None:
        """Return the tools of the model's provider that its agent has now."""
        return self.agent.native_tools

    @property
    def responding(self) -> bool:
        """Return whether a turn is open, or what a script has said, as in 0.4.3."""
        return self._said_responding or ("agent" in vars(self) and self.agent.responding)

    @responding.setter
    def responding(self, value: bool) -> None:
        self._said_responding = value

    @property
    def last_messages_count(self) -> int:
        """Return the number of messages before the answer to the last request."""
        return self.agent.last_messages_count if "agent" in vars(self) else 0

    @last_messages_count.setter
    def last_messages_count(self, count: int) -> None:
        self.agent.last_messages_count = count

    @property
    def pending(self) -> Pending | None:
        """Return the block or tool call that waits for approval; None if there is none."""
        if "session" not in vars(self):
            return None
        mine = (self.user.id, self.agent.actor.id)
        for question in self.session.questions.open:
            if question.actor in mine and question.kind in ("block", "call"):
                from interpreter.policy.pending import Pending

                return Pending(question, self.session, self.scanner.scan)
        return None

    # -- chatting ------------------------------------------------------------------------------------------------

    def chat(
        self,
        message: str | Message | list[Message] | None = None,
        display: bool = True,
        stream: bool = False,
        blocking: bool = True,
    ) -> Any:
        """Send a message. Returns the new messages, with `stream` a generator of chunks, or None if not blocking."""
        if not blocking:
            self._background = threading.Thread(target=self._chat_in_background, args=(message, display), daemon=True)
            self._background.start()
            return None
        if display:
            from interpreter.frontend import display as front_end

            chunks = front_end().show_chat(self, message)
            if not self.stream_all:
                from interpreter.messages import only_original

                chunks = only_original(chunks)
        elif message is None:
            raise UsageError("chat() needs a message when display is False.")
        else:
            from interpreter.sigint import Guarded

            chunks = Guarded(self._chunks_of(message), self.cancel)
        if stream:
            return chunks
        with closing(chunks):
            for _ in chunks:
                pass
        return self.messages[self.last_messages_count :]

    # 0.4.3's own names, which servers and tests of others use

    def _streaming_chat(self, message: Any = None, display: bool = True) -> Any:
        return self.chat(message, display, stream=True)

    def _respond_and_store(self) -> Generator[Chunk]:
        return self._chunks_of(self.messages)

    def __reduce__(self) -> Any:
        """Copying and pickling keep the settings and the messages, not the session."""
        return _remake, (type(self), given_settings(self))

    def _chunks_of(self, message: Any) -> Generator[Chunk]:
        """Yield the events of a turn as 0.4.3 streams them; with `stream_all`, also those that 0.4.3 did not have."""
        yield from self.session.perform(self.agent.turn(message), self.agent.actor).chunks(self.stream_all)

    def respond(self, message: Any) -> Generator[Event]:
        """Send a message and yield the events of the turn. `chat` yields the same as LMC chunks."""
        with closing(self.session.perform(self.agent.turn(message), self.agent.actor)) as events:
            yield from events

    def _chat_in_background(self, message: Any, display: bool) -> None:
        try:
            self.chat(message, display=display)
        except Exception as error:  # noqa: BLE001 - raised in wait()
            self._thread_error = error

    def wait(self) -> list[Message]:
        """Wait for a chat with `blocking=False` and return its new messages."""
        if self._background is not None:
            self._background.join()
        if "agent" in vars(self):
            self.agent.idle.wait()
        error, self._thread_error = self._thread_error, None
        if error is not None:
            raise error
        return self.messages[self.last_messages_count :]

    def cancel(self) -> None:
        """End the turn, or the running block if there is no turn. Works from any thread and keeps everything so far."""
        if "agent" in vars(self):
            self.agent.cancel()
            self.session.cancel(self.user)
        if "llm" in vars(self):
            self.llm.cancel()
        if "scanner" in vars(self):
            self.scanner.cancel()

    @property
    def cancelled(self) -> bool:
        """Return whether the running turn was cancelled."""
        return "agent" in vars(self) and self.agent.cancelled

    def reset(self) -> None:
        """Clear the conversation and end all runtimes."""
        if "agent" in vars(self):
            self.agent.end_suspended_turn()
        if "session" not in self.__dict__:
            self._reset()
            return
        from interpreter.session import ACTION, Do

        if ACTION.get() is None:  # else it would cancel the action that it is part of
            self.session.cancel(self.user)
            self.agent.cancel()
        self._do(Do("reset", self._reset, "a reset is running", recorded=False))

    def _reset(self) -> None:
        is_owner = "computer" not in self.__dict__ or self.computer.interpreter in (self, None)
        if "computer" in self.__dict__ and is_owner:
            self.computer.terminate()
        if "agent" in vars(self):
            if not is_owner and self.runtimes is not self.computer.runtimes:
                self.runtimes.terminate()
            if is_owner:
                self.timeline.reset()
            self.journal.reset()
            self.prompt.rendered = {}
            self.agent.last_messages_count = 0
        self.messages = []
        if "approver" in self.__dict__ and is_owner:
            self.approver.known_functions = {}
        self.conversation_filename = None

    def sandbox_now(self) -> Sandbox | None:
        """Return what code can reach, by the settings, the mode and the user's file; None without a sandbox."""
        from interpreter.policy.policy import mode_of

        plans = mode_of(self) == "plan"
        if self.sandbox == "off" and not plans:
            return None
        from interpreter.policy.policy import granted_access
        from interpreter.sandbox.sandbox import Access, Sandbox

        if plans:
            return Sandbox.for_plan_mode(self)
        granted = [Access(kind, value) for kind, value in granted_access(self.workspace)]
        return Sandbox.from_settings(self).with_access(granted)

    def _permissions(self) -> Permissions:
        """Return what this interpreter's actors may do under the present settings."""
        from interpreter.policy.policy import mode_of
        from interpreter.session import Permissions

        screen = frozenset({"display", "view", "screenshot"}) if self.os else frozenset[str]()
        own = Permissions(mode_of(self), self.sandbox_now(), self.safe_mode, self.offline, given_tools=screen)
        if self.started_by is None:
            return own
        # Its sandbox has another workspace, so the two can't be compared: the caller who starts it has chosen that one.
        return own.restricted_to(replace(self.started_by.permissions, sandbox=None, budget=None))

    def _contain(self) -> None:
        """Run blocks in a sandbox from now on. If none is available, raise an error and change nothing."""
        from interpreter.app.trust import switch_sandbox

        switch_sandbox(self, "workspace")

    def _make_approver(self) -> Approver:
        from interpreter.policy.approval import Approver

        return Approver(
            lambda: self.workspace,
            lambda: self.computer.registry,
            lambda: self.scanner,
            lambda path: self.timeline.left_out(path),
            lambda review, context: self.agent.forecast(review, context),
        )

    # -- going back ------------------------------------------------------------------------------------------------

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """Return the checkpoints, the oldest first: one before each turn and each block."""
        self.timeline.adopt()
        return list(self.timeline.checkpoints)

    def undo(
        self,
        count: int = 1,
        parts: Collection[Part] | None = None,
        blocks: bool = False,
        overwrite: Collection[str] = (),
        by: Actor | None = None,
    ) -> UndoResult:
        """Undo the last turns, or with `blocks` the last blocks: conversation, files and variables.

        `parts` limits it to some of these. Files that were changed since then stay as they are, unless they are listed
        in `overwrite`. `by` is who undoes it, the user by default.
        """
        return self._go(
            "undo", lambda chosen: self.timeline.destination("undo", count, chosen, blocks), parts, overwrite, by
        )

    def redo(
        self,
        count: int = 1,
        parts: Collection[Part] | None = None,
        blocks: bool = False,
        overwrite: Collection[str] = (),
        by: Actor | None = None,
    ) -> UndoResult:
        """Redo what was undone."""
        return self._go(
            "redo", lambda chosen: self.timeline.destination("redo", count, chosen, blocks), parts, overwrite, by
        )

    def restore(
        self,
        point: int,
        parts: Collection[Part] | None = None,
        overwrite: Collection[str] = (),
        by: Actor | None = None,
    ) -> UndoResult:
        """Return to the checkpoint with this id, earlier or later."""
        return self._go("restore", lambda _: self.timeline.place_of(point), parts, overwrite, by)

    def save_variables_now(self, seconds: float | None = None) -> None:
        """Save the variables with the conversation, so that `restore_variables` in a later run can restore them."""
        self.timeline.variables.save(self.save_variables_seconds if seconds is None else seconds)

    def restore_variables(self) -> Outcomes:
        """Restore the saved variables, after `journal.resume`. Returns the outcome for each language."""
        from interpreter.session import Do

        return self._do(Do("restore_variables", self.timeline.variables.load, recorded=False))  # type: ignore[no-any-return]

    def fork(self, workspace: str | None = None, by: Actor | None = None) -> OpenInterpreter:
        """Make a second interpreter with the same conversation and variables, in a copy of the workspace."""
        from interpreter.app.forks import fork
        from interpreter.session import Do

        making = Do("fork", lambda: fork(self, workspace), "a fork is being made")
        making.needs_lane = not self.session.lane.is_held  # the block that holds it may wait for this, or be left open
        return self._do(making, by)  # type: ignore[no-any-return]

    def keep(self, overwrite: Collection[str] = ()) -> Merged:
        """Merge this fork's files into the workspace it came from, and continue there in its place."""
        from interpreter.app.forks import Keep

        return self._do(Keep(self, overwrite))  # type: ignore[no-any-return]

    def drop(self) -> None:
        """End this fork. The workspace that it came from stays unchanged."""
        from interpreter.app.forks import drop
        from interpreter.session import Do

        self._do(Do("drop", lambda: drop(self), "a fork is being dropped", recorded=False))

    def _go(
        self,
        kind: UndoKind,
        place: Callable[[Collection[Part]], int],
        parts: Collection[Part] | None,
        overwrite: Collection[str],
        by: Actor | None,
    ) -> UndoResult:
        from interpreter.session.checkpoints import PARTS, UndoAction

        chosen = PARTS if parts is None else parts
        if not chosen or not set(chosen) <= set(PARTS):
            raise UsageError(f"`parts` takes one or more of {', '.join(PARTS)}, not {parts!r}.")
        timeline = self.timeline
        action = UndoAction(timeline, self.agent, kind, lambda: timeline.plan(place(chosen), chosen, kind), overwrite)
        return self._do(action, by)  # type: ignore[no-any-return]

    def _do(self, action: Action, by: Actor | None = None) -> Any:
        return self.session.perform(action, by or self.user).result()

    # -- shown by a front end --------------------------------------------------------------------------------------

    def can_dry_run(self, language: str) -> bool:
        """Check whether blocks can be previewed: not in a sandbox, nor in a language that can't copy its variables."""
        return self.sandbox_now() is None and self.computer.runtimes.can_dry_run(language)

    def dry_run(self, language: str, code: str, by: Actor | None = None, asks: bool = True) -> Preview:
        """Preview a block in a copy-on-write view of the workspace; NotPreviewableError where that is not possible.

        If it does not ask, input that the block waits for has ended.
        """

        def perform(action: Action) -> Performance:
            return self.session.perform(action, by or self.user)

        try:
            files, read_tables = self.timeline.files, self.timeline.read_tables
            pool, record = self.computer.runtimes, files.record
            make = load("interpreter.preview.preview:Preview")
            preview: Preview = make(pool, self.workspace, perform, record, language, code, read_tables, asks)
            return preview
        except NotPreviewableError as error:
            error.named = self.approver.analyze(language, code).lines(self.timeline.left_out)
            raise

    def display_message(self, markdown: str) -> None:
        """Show Markdown to the user."""
        from interpreter.frontend import display

        display().show_message(self, markdown)

    def local_setup(self) -> None:
        """Ask which local model to use."""
        from interpreter.frontend import load

        load("terminal.chat").local_setup(self)

    def load_profile(self, name: str, trust: bool = False) -> None:
        """Apply a profile by name or path, or with `trust` by URL."""
        from interpreter.config.profiles import load

        load(self, name, accept=lambda profile: trust)

    def get_oi_dir(self) -> str:
        """Return the folder for profiles, conversations and models."""
        return str(our_folder())

    anonymous_telemetry = will_contribute = False  # nothing is ever sent


def _remake(cls: type[OpenInterpreter], given: dict[str, Given]) -> OpenInterpreter:
    made = cls()
    give_settings(made, given)
    return made


def containment_for(settings: InterpreterSettings, sandbox: Any, present: Any) -> Containment | None:
    """Return the sandbox for new runtimes, if this is the sandbox of their actor; None without one."""
    if sandbox is None:
        return None
    from interpreter.sandbox.containment import containment_for

    reference = weakref.ref(settings)  # runtimes hold the sandbox, and must not keep a dropped interpreter alive

    def refused_by_rules(access: Access) -> str:
        from interpreter.policy.policy import Policy

        if (known := reference()) is None:
            return "the session has ended"
        policy = Policy.load(known.workspace, known.computer.registry)
        return policy.access_refusal(access.kind, access.value)

    granted = present is not None and bool(present.granted)
    return containment_for(sandbox, None if granted and sandbox.fixed else present, refused_by_rules)
