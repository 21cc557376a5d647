"""OpenInterpreter: the object people hold; its settings, its messages and chat()."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Generator, Iterator
from typing import TYPE_CHECKING, Any

from interpreter.errors import BusyError, NotPreviewableError, UsageError
from interpreter.settings import SettingsGroup, apply, from_environment

if TYPE_CHECKING:
    from interpreter.blocks import PendingBlock
    from interpreter.call_consent import CallConsent
    from interpreter.computer_api import Computer
    from interpreter.computer_api.answering import Use
    from interpreter.journal import Recorder
    from interpreter.llm import Llm
    from interpreter.llm.computer_use import Screen
    from interpreter.messages import Chunk, Message
    from interpreter.os_mode.limits import Limits
    from interpreter.preview import Preview
    from interpreter.safety.look import Effect
    from interpreter.safety.sandbox import Containment, Sandbox
    from interpreter.safety.scan import Scanner
    from interpreter.undo import Fork, Merged, Part, Point, Timeline, Undone, Way


class OpenInterpreter(SettingsGroup, group=""):
    """Says to a model what you want, and runs the code that the model writes.

    Every setting of docs/settings.md is an argument and an attribute. `messages` is a plain list that you may
    read, assign and change between turns.
    """

    messages: list[Message]
    llm: Llm
    computer: Computer
    journal: Recorder
    timeline: Timeline
    forked: Fork | None
    scanner: Scanner
    pending: PendingBlock | None
    responding: bool
    last_messages_count: int
    screen: Screen | None
    conversation_filename: str | None

    def __init__(
        self,
        messages: list[Message] | None = None,
        llm: Llm | None = None,
        computer: Computer | None = None,
        **settings: Any,
    ) -> None:
        if messages is not None:
            self.messages = messages
        self.pending = None
        self.forked = None
        self.responding = False
        self.last_messages_count = 0
        self.screen = None  # in OS mode, as the model sees it
        self._os_limits: Limits | None = None
        self._rendered: dict[str, str] = {}
        self._defined: dict[str, tuple[Effect, ...]] = {}  # what functions of blocks that ran would do
        self._approved_calls: frozenset[str] = frozenset()  # that the user has seen in the block, and said yes to
        self._call_consent: tuple[object, CallConsent] | None = None
        self._cancel = threading.Event()
        self._cancelling = threading.RLock()
        self._idle = threading.Event()
        self._idle.set()
        self._turn: Generator[Chunk] | None = None
        self._thread_error: BaseException | None = None
        if llm is not None:
            self.llm = llm
        if computer is not None:
            self.computer = computer
        apply(self, from_environment(os.environ), "environment")
        apply(self, settings, "code")
        _ = self.workspace  # by default where we are now, wherever the program goes later

    def __getattr__(self, name: str) -> Any:
        # Made on first use: none is needed to print a version or a settings table.
        if name == "llm":
            from interpreter.llm import Llm

            self.llm = Llm(self)
            return self.llm
        if name == "computer":
            from interpreter.computer_api import Computer

            self.computer = Computer(self)
            return self.computer
        if name == "journal":
            from interpreter.journal import Recorder

            self.journal = Recorder(self)
            return self.journal
        if name == "timeline":
            from interpreter.undo import Timeline

            self.timeline = Timeline(self)
            return self.timeline
        if name == "scanner":
            from interpreter.safety.scan import Scanner

            self.scanner = Scanner()
            return self.scanner
        return super().__getattr__(name)

    # -- chatting ------------------------------------------------------------------------------------------------

    def chat(
        self,
        message: str | Message | list[Message] | None = None,
        display: bool = True,
        stream: bool = False,
        blocking: bool = True,
    ) -> Any:
        """Say something; the new messages, or with `stream` a generator of chunks, or None if not blocking."""
        if not blocking:
            self._idle.clear()
            threading.Thread(target=self._chat_in_background, args=(message, display), daemon=True).start()
            return None
        chunks = self._streaming_chat(message, display)
        if stream:
            return chunks
        for _ in chunks:
            if not display and self.pending is not None and self.pending.needs_somebody:
                self.pending.nobody_there()  # going on is consent only of those who can see the question
        return self.messages[self.last_messages_count :]

    def _streaming_chat(self, message: Any = None, display: bool = True) -> Iterator[Chunk]:
        if display:
            from interpreter.frontend import show_chat

            return show_chat(self, message)
        if message is None:
            raise UsageError("chat() needs a message when display is False.")
        return self._respond(message)

    def _respond(self, message: Any) -> Iterator[Chunk]:
        from interpreter.loop import Turn

        self._end_abandoned_turn()
        self._store(message)
        self._cancel.clear()
        self._begin_responding()
        turn = Turn(self).run()
        assert isinstance(turn, Generator)
        self._turn = turn
        try:
            yield from turn
        finally:
            self._turn = None
            with self._cancelling:  # a cancel on its way is for this turn, not for the next
                self._cancel.clear()
                self._end_responding()

    def _store(self, message: Any) -> None:
        """Add what the user said; a list replaces the conversation."""
        if isinstance(message, str):
            self.messages.append({"role": "user", "type": "message", "content": message})
        elif isinstance(message, dict):
            self.messages.append({"role": "user", "type": "message", **message})  # type: ignore[typeddict-item]
        elif isinstance(message, list):
            self.messages = message
        else:
            raise UsageError(f"chat() takes a string, a message or a list of messages, not {type(message).__name__}.")
        self.last_messages_count = len(self.messages)

    def _chat_in_background(self, message: Any, display: bool) -> None:
        try:
            self.chat(message, display=display)
        except Exception as error:  # noqa: BLE001 - raised to whoever waits
            self._thread_error = error
        finally:
            self._idle.set()

    def _begin_responding(self) -> None:
        self.responding = True
        self._idle.clear()

    def _end_responding(self) -> None:
        self.responding = False
        self._idle.set()

    def _end_abandoned_turn(self) -> None:
        """A turn that somebody left in the middle ends when the next one begins."""
        turn, self._turn = self._turn, None
        if turn is None:
            return
        try:
            turn.close()
        except ValueError as error:
            self._turn = turn
            raise BusyError(
                "This interpreter is still responding in another thread: wait() for it, cancel() it, "
                "or use another OpenInterpreter()."
            ) from error

    def wait(self) -> list[Message]:
        """Wait until a chat that does not block is over; its new messages."""
        self._idle.wait()
        error, self._thread_error = self._thread_error, None
        if error is not None:
            raise error
        return self.messages[self.last_messages_count :]

    def cancel(self) -> None:
        """End the turn, from any thread; everything so far is kept. Where there is none, the block that runs."""
        with self._cancelling:
            if self.responding:
                self._cancel.set()
            if "llm" in self.__dict__:
                self.llm.cancel()
            if "computer" in self.__dict__:
                self.computer.stop()
            if "scanner" in self.__dict__:
                self.scanner.cancel()

    @property
    def cancelled(self) -> bool:
        """Whether the turn that is running has been told to end."""
        return self._cancel.is_set()

    def reset(self) -> None:
        """Forget the conversation and end all sessions."""
        self._end_abandoned_turn()
        if "computer" in self.__dict__:
            self.computer.terminate()
        if "timeline" in self.__dict__:
            self.timeline.reset()
        if "journal" in self.__dict__:
            self.journal.reset()
        self.messages = []
        self.last_messages_count = 0
        self._rendered = {}
        self._defined = {}
        self.conversation_filename = None

    def containment_now(self, present: Any = None) -> Containment | None:
        """What new sessions are shut in, as the settings and the mode say; None without a sandbox."""
        sandbox = self.sandbox_now()
        if sandbox is None:
            return None
        from interpreter.safety.sandbox import containment_for

        granted = present is not None and bool(present.granted)
        return containment_for(sandbox, None if granted and sandbox.fixed else present)

    def sandbox_now(self) -> Sandbox | None:
        """What code can reach, as the settings, the mode and the user's file say; None if that is everything."""
        from interpreter.consent import mode_of

        plans = mode_of(self) == "plan"
        if self.sandbox == "off" and not plans:
            return None
        from interpreter.safety.policy.grants import given_always
        from interpreter.safety.sandbox import Sandbox, granting

        if plans:
            return Sandbox.looking_only(self)
        return granting(Sandbox.from_settings(self), given_always(self.workspace))

    def _permit_call(self, use: Use, call: Any) -> str:
        """Who lets a block's code call a tool of the computer; PermissionError if nobody does."""
        from interpreter.call_consent import CallConsent

        with self._cancelling:  # calls come from several threads
            present = self._call_consent
            if present is None or present[0] != call.origin:
                present = self._call_consent = (call.origin, CallConsent(self))
        permitted = present[1].permit(use, call.ask)
        if self._os_limits is not None:
            self._os_limits.check(use)
        return permitted

    # -- going back ------------------------------------------------------------------------------------------------

    @property
    def checkpoints(self) -> list[Point]:
        """The moments that can be returned to, the oldest first: before each turn and each block."""
        self.timeline.adopt()
        return list(self.timeline.points)

    def undo(
        self,
        count: int = 1,
        parts: Collection[Part] | None = None,
        blocks: bool = False,
        overwrite: Collection[str] = (),
    ) -> Undone:
        """Take back the last turns, or with `blocks` the last blocks: conversation, files and variables.

        `parts` says which of these. A file that somebody else has changed since stays as it is, unless it is named
        in `overwrite`.
        """
        chosen = self._parts(parts)
        return self._go(self.timeline.back(count, chosen, blocks), chosen, overwrite, "back")

    def redo(
        self,
        count: int = 1,
        parts: Collection[Part] | None = None,
        blocks: bool = False,
        overwrite: Collection[str] = (),
    ) -> Undone:
        """Do again what was taken back."""
        chosen = self._parts(parts)
        return self._go(self.timeline.forward(count, chosen, blocks), chosen, overwrite, "forward")

    def restore(self, point: int, parts: Collection[Part] | None = None, overwrite: Collection[str] = ()) -> Undone:
        """Return to the checkpoint with this id, earlier or later."""
        return self._go(self.timeline.place_of(point), self._parts(parts), overwrite, "there")

    def fork(self, workspace: str | None = None) -> OpenInterpreter:
        """A second interpreter with the same conversation and variables, in a copy of the workspace."""
        from interpreter.undo.fork import fork

        self._end_abandoned_turn()
        return fork(self, workspace)

    def keep(self, overwrite: Collection[str] = ()) -> Merged:
        """For a fork: bring its files into the workspace that it came from, go on there, and drop the other way."""
        from interpreter.undo.fork import keep

        self._end_abandoned_turn()
        return keep(self, overwrite)

    def drop(self) -> None:
        """For a fork: end it; the workspace that it came from stays as it is."""
        from interpreter.undo.fork import drop

        self._end_abandoned_turn()
        drop(self)

    def _parts(self, parts: Collection[Part] | None) -> Collection[Part]:
        from interpreter.undo import PARTS

        self._end_abandoned_turn()
        chosen = PARTS if parts is None else parts
        if not chosen or not set(chosen) <= set(PARTS):
            raise UsageError(f"`parts` takes some of {', '.join(PARTS)}, not {parts!r}.")
        return chosen

    def _go(self, place: int, parts: Collection[Part], overwrite: Collection[str], way: Way) -> Undone:
        return self.timeline.go(self.timeline.outlook(place, parts, way), overwrite)

    # -- shown by a front end --------------------------------------------------------------------------------------

    def _preview(self, language: str, code: str) -> Preview:
        """Try a block out in a copy-on-write view of the workspace; NotPreviewableError where there is none."""
        from interpreter.preview import Preview

        try:
            return Preview(self, language, code)
        except NotPreviewableError as error:
            from interpreter.consent import looked_at

            error.named = looked_at(self, language, code).lines()
            raise

    def display_message(self, markdown: str) -> None:
        """Show Markdown to the user."""
        from interpreter.frontend import show_message

        show_message(self, markdown)

    def local_setup(self) -> None:
        """Ask which local model to use."""
        from interpreter.frontend import local_setup

        local_setup(self)

    def load_profile(self, name: str, trust: bool = False) -> None:
        """Set this interpreter up as a profile says: its name, its file, or with `trust` its address."""
        from interpreter.profiles import load

        load(self, name, accept=lambda profile: trust)

    def get_oi_dir(self) -> str:
        """The folder of profiles, conversations and models."""
        from platformdirs import user_config_dir

        return user_config_dir("open-interpreter")

    @property
    def anonymous_telemetry(self) -> bool:
        """Nothing is ever sent."""
        return False

    @property
    def will_contribute(self) -> bool:
        """Nothing is ever sent."""
        return False
