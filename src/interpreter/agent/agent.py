"""An agent: a model with a prompt, a conversation and tools, which acts in a session."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.computer import Participant
from interpreter.config.homes import our_folder
from interpreter.errors import BusyError
from interpreter.leaves import ROWS, Part, leaves, load
from interpreter.session import Action, ActionContext, Actor, Block, Session
from interpreter.session.checkpoints import Timeline
from interpreter.session.journal import Recorder
from interpreter.tools import Toolbox, execute_tool, package_tools

if TYPE_CHECKING:
    from interpreter.agent.observer import TurnObserver
    from interpreter.agent.prompt import SystemPrompt
    from interpreter.agent.turn import Turn
    from interpreter.computer_api import Computer
    from interpreter.config.settings import InterpreterSettings
    from interpreter.llm import Llm
    from interpreter.llm.limits import Budget
    from interpreter.llm.native_tools import NativeTools
    from interpreter.messages import Message
    from interpreter.policy.review import BlockReview, Forecast
    from interpreter.runtimes.pool import RuntimePool
    from interpreter.session.checkpoints.checkpoint import FolderPlan
    from interpreter.workspace import RestorePlan


RESPONDING = (
    "This interpreter is still responding in another thread. Call wait() or cancel(), or use another OpenInterpreter()."
)


class Agent:
    """A model with a prompt, a conversation and tools. What it does is an action of `actor` in `session`.

    A second agent joins a session with the `timeline` of the first one. `settings` are read whenever they are needed,
    because programs change them at any time; the conversation is `settings.messages`.
    """

    native_tools: NativeTools | None = None  # of its model's provider

    def __init__(
        self,
        session: Session,
        computer: Computer,
        actor: Actor,
        settings: InterpreterSettings,
        llm: Callable[[], Llm] | None = None,
        timeline: Timeline | None = None,
    ) -> None:
        self.session, self.computer, self.actor, self.settings = session, computer, actor, settings
        self._get_llm = llm
        if llm is None:
            settings.computer = computer
        self.last_messages_count = 0
        self.idle = threading.Event()  # set while no turn is open
        self.idle.set()
        self._turn: Turn | None = None
        self._beginning = threading.RLock()
        self._leaf_tools: set[str] = set()  # whose tools it has
        self.journal = Recorder(self)
        self.timeline = timeline if timeline is not None else Timeline(self)
        for each in actor.chain():  # the user's own code runs for it too
            self.timeline.agents.setdefault(each.id, self)
            computer.participants.setdefault(
                each.id, Participant(settings, lambda: self.tools, lambda: self.code_tools)
            )

    # -- its parts -------------------------------------------------------------------------------------------------

    @property
    def messages(self) -> list[Message]:
        """Return the conversation, a list that users may replace."""
        return self.settings.messages

    @messages.setter
    def messages(self, messages: list[Message]) -> None:
        self.settings.messages = messages

    @cached_property
    def _own_llm(self) -> Llm:
        from interpreter.llm import Llm

        self.settings.llm = Llm(self.settings, self)
        return self.settings.llm

    @property
    def budget(self) -> Budget:
        """Return what its model may spend."""
        return self.actor.budget

    @property
    def llm(self) -> Llm:
        """The agent's model."""
        return self._get_llm() if self._get_llm is not None else self._own_llm

    @cached_property
    def prompt(self) -> SystemPrompt:
        """The agent's system message."""
        from interpreter.agent.prompt import SystemPrompt

        return SystemPrompt(self)

    @property
    def tools(self) -> Toolbox:
        """Return the tools that the agent's model can call."""
        for part in (part for leaf in leaves() for part in leaf.tools):
            if part.make not in self._leaf_tools and self.uses(part):
                with self._beginning:
                    if part.make not in self._leaf_tools:
                        self._leaf_tools.add(part.make)
                        for tool in load(part.make)(self):
                            self._toolbox.add(tool)
        return self._toolbox

    def keep_tools(self) -> None:
        """Keep the present tools even if a leaf comes into use later: providers cache the list with the prompt."""
        self._leaf_tools.update(part.make for leaf in leaves() for part in leaf.tools)

    def observers(self) -> list[TurnObserver]:
        """Make the observers of a turn, for the leaves in use."""
        makes = [part.make for leaf in ROWS for part in leaf.observers if self.uses(part)]
        return [observer for make in makes if (observer := load(make)(self)) is not None]

    @property
    def is_observed(self) -> bool:
        """Return whether leaves watch its turns, and show the model more than it asked for."""
        return any(self.uses(part) for leaf in ROWS for part in leaf.observers)

    def forecast(self, review: BlockReview, context: ActionContext) -> Forecast | None:
        """Find out what a leaf in use adds to the question about a block."""
        makes = (part.make for leaf in leaves() for part in leaf.cards if self.uses(part))
        return next((more for make in makes if (more := load(make)(self, review, context)) is not None), None)

    def notices(self) -> Iterator[str]:
        """Yield what the user should know when a conversation begins."""
        for part in (part for leaf in leaves() for part in leaf.notices if self.uses(part)):
            yield from load(part.make)(self)

    def follow_ups(self, block: Block) -> Iterator[Action]:
        """Yield what leaves in use do after a block of its model that worked."""
        for part in (part for leaf in leaves() for part in leaf.follow_ups if self.uses(part)):
            yield from load(part.make)(self, block)

    def plan_repositories(self, files: RestorePlan) -> FolderPlan | None:
        """Plan the effect of an undo on `.git` folders; None to leave them alone."""
        makes = (part.make for leaf in leaves() for part in leaf.undo if self.uses(part))
        return next((load(make)(self, files) for make in makes), None)

    def uses(self, part: Part) -> bool:
        """Return whether a part of a leaf is in use: its setting is on, and one of its files exists."""
        group, _, leaf = part.when.rpartition(".")
        owner: Any = self.computer if group == "computer" else self.llm if group else self.settings
        if part.when and not getattr(owner, leaf):
            return False
        folders = {"config": our_folder(), "workspace": self.session.workspace()} if part.files else {}
        paths = [file.format(**folders) for file in part.files]
        # An empty folder is one that a sandbox keeps code from making, such as `.git`.
        return not paths or any(os.path.isfile(path) or (os.path.isdir(path) and os.listdir(path)) for path in paths)

    @cached_property
    def _toolbox(self) -> Toolbox:
        def languages() -> list[str]:
            return [language.name.lower() for language in self.runtimes.available()]

        return Toolbox([execute_tool(languages, partial(self.computer.stream, by=self.actor)), *package_tools()])

    @cached_property
    def code_tools(self) -> Toolbox:
        """Return the tools behind the names that leaves define in code."""
        rows = (row for leaf in leaves() for row in leaf.names)
        return Toolbox(tool for make in dict.fromkeys(row.tools for row in rows) for tool in load(make)(self))

    @property
    def runtimes(self) -> RuntimePool:
        """Return the runtimes that its blocks run in."""
        return self.computer.runtimes_of(self.actor)

    # -- its turns -------------------------------------------------------------------------------------------------

    def turn(self, message: Any) -> Turn:
        """Make the turn that answers a message: an action, for `Session.perform` or `Session.start`."""
        from interpreter.agent.turn import Turn

        return Turn(self, message)

    @property
    def responding(self) -> bool:
        """Return whether a turn is open."""
        return self._turn is not None

    @property
    def cancelled(self) -> bool:
        """Return whether the open turn was cancelled."""
        turn = self._turn
        return turn is not None and turn.is_cancelled()

    def cancel(self) -> None:
        """Cancel the agent's turn, with its blocks and calls. May be called from any thread."""
        self.session.cancel(self.actor)

    def end_suspended_turn(self) -> None:
        """End a turn that its reader has stopped reading; BusyError if another thread is reading it."""
        from interpreter.sigint import wait_for_abandoned

        wait_for_abandoned()
        try:
            if self._turn is not None:
                self.session.end_suspended(self._turn)
        except BusyError as busy:
            raise BusyError(RESPONDING) from busy

    def open_turn(self, turn: Turn) -> None:
        """Make this the agent's turn. If another turn is open, wait for its end."""
        while self._turn is not turn:
            self.end_suspended_turn()
            with self._beginning:
                if self._turn is None:
                    self._turn = turn
                    self.idle.clear()

    def close_turn(self, turn: Turn) -> None:
        """Note that the turn has ended."""
        with self._beginning:
            if self._turn is turn:
                self._turn = None
                self.idle.set()
