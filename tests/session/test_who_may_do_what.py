"""Who may do what: every kind of action by every kind of actor in every mode and sandbox, and what ancestors limit."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from fnmatch import fnmatch
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conversation import Echo
from interpreter import OpenInterpreter
from interpreter.errors import NotPermittedError, SandboxUnavailableError
from interpreter.messages import Chunk
from interpreter.sandbox import bubblewrap
from interpreter.sandbox.sandbox import Sandbox
from interpreter.session import (
    APPROVE,
    Action,
    ActionContext,
    Actor,
    Answer,
    Block,
    Do,
    Permissions,
    Question,
    SetPermissions,
    ToolCall,
)
from interpreter.session.actor import MODES
from interpreter.tools import Tool

pytestmark = pytest.mark.usefixtures("no_strays")


class Nothing(Action):
    """An action without an effect."""

    def run(self, context: ActionContext) -> Generator[Chunk]:
        self.outcome = "done"
        yield from ()


# -- the table ------------------------------------------------------------------------------------------------------

# Action, actor, mode, sandbox, and what happens; the first row that fits. A yes is given to what asks.
TABLE = """
*               viewer|revoked          *                 *           not permitted
permissions     agent|sub-agent         *                 *           not permitted
permissions|do  *                       *                 *           ran
reads           *                       *                 *           ran
acts|sends      *                       plan              *           refused
acts|sends      *                       *                 read-only   refused
acts|sends      sub-agent               *                 *           refused
sends           *                       *                 *           asked
acts            *                       auto              *           ran
acts            *                       *                 *           asked
calls           user|owner              ask|auto-in*      off|work*   asked
calls           agent                   auto-in*          workspace   asked
calls|writes    user|owner              plan              *           stopped
calls|writes    user|owner              *                 read-only   stopped
calls|writes    user|owner              *                 *           ran
calls|writes    sub-agent               ask               *           asked, stopped
calls|writes    sub-agent               *                 *           stopped
calls|writes    agent                   plan              *           stopped
calls|writes    agent                   ask               read-only   asked, stopped
calls|writes    agent                   *                 read-only   stopped
calls|writes    agent                   auto              *           ran
calls|writes    agent                   auto-in-sandbox   workspace   ran
calls|writes    agent                   *                 *           asked
"""
ROWS = [line.split(None, 4) for line in TABLE.strip().splitlines()]
SANDBOXES = ("off", "workspace", "read-only")
ACTORS = ("user", "owner", "agent", "sub-agent", "viewer", "revoked")
ACTIONS = ("permissions", "do", "reads", "acts", "sends", "calls", "writes")


def row_for(*given: str) -> list[str]:
    def fits(pattern: str, value: str) -> bool:
        return any(fnmatch(value, each) for each in pattern.split("|"))

    return next(row for row in ROWS if all(map(fits, row[:4], given)))


def test_every_row_of_the_table_decides_something() -> None:
    used = [row_for(*each) for each in product(ACTIONS, ACTORS, MODES, SANDBOXES)]
    assert [row for row in ROWS if row not in used] == []


class House:
    """A session with every kind of actor. `sub-agent` may do anything, but acts for an agent in plan mode."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self.interpreter = OpenInterpreter(workspace=str(folder), conversation_history=False)
        self.session = session = self.interpreter.session
        user, agent = self.interpreter.user, self.interpreter.agent.actor
        planner = session.add_actor("agent", Permissions("plan", Sandbox.for_plan_mode(self.interpreter)), agent)
        self.actors: dict[str, Actor] = {
            "user": user,
            "owner": session.add_actor("client", user.source),
            "agent": agent,
            "sub-agent": planner.child("agent", Permissions("auto")),
            "viewer": session.add_actor("viewer", Permissions("auto")),
            "revoked": session.add_actor("client", Permissions("auto")),
        }
        session.revoke(self.actors["revoked"])
        self.interpreter.tools.append(self.tool("acts"))

    def action(self, kind: str) -> Action:
        match kind:
            case "permissions":
                return SetPermissions(self.interpreter.agent.actor, change=lambda: None)
            case "do":
                return Do("export", lambda: "exported")
            case "writes":
                return Block("python", "open('written', 'w').close()")
            case "calls":
                return Block("python", "tools.acts()")
        return ToolCall(self.tool(kind), {})

    def tool(self, policy: Any) -> Tool:
        return Tool(policy, "", {"type": "object"}, lambda given: (self.folder / "written").touch(), policy)

    def perform(self, kind: str, actor: str) -> str:
        """Do it, with a yes to what asks; what happened."""
        written, asked = self.folder / "written", list[Question]()
        written.unlink(missing_ok=True)

        def approve(question: Question) -> Answer:
            asked.append(question)
            assert question.actor == self.actors[actor].id
            return Answer(APPROVE)

        action = self.action(kind)
        with self.session.questions.answerable(["block", "call"], approve):
            try:
                self.session.perform(action, self.actors[actor]).result()
            except NotPermittedError:
                assert not asked and not written.exists()
                return "not permitted"
        if kind in ("calls", "writes"):
            assert written.exists() == (action.outcome == "done")
        happened = "ran" if action.outcome == "done" else "refused" if kind in ("acts", "sends") else "stopped"
        return ", ".join([*(["asked"] * bool(asked)), *([happened] if happened != "ran" or not asked else [])])


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_every_action_by_every_actor_in_every_mode(sandbox: str, tmp_path: Path, home: Path) -> None:
    try:
        bubblewrap.available()
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    house = House(tmp_path, home)
    house.interpreter.sandbox = sandbox
    wrong = []
    for mode in MODES:
        house.interpreter.mode = mode
        for actor in ACTORS:
            for action in ACTIONS:
                happened, due = house.perform(action, actor), row_for(action, actor, mode, sandbox)[4]
                if happened != due:
                    wrong.append(f"{action} by {actor} in {mode}, sandbox {sandbox}: {happened}, not {due}")
    house.interpreter.reset()
    assert not wrong, "\n".join(wrong)


# -- random trees ---------------------------------------------------------------------------------------------------

STRICTNESS = {"ran": 0, "asked": 1, "refused": 2}
KINDS = ("reads", "acts", "sends", "block")
READ_ONLY = Sandbox("read-only", "/", fixed=True)
random_permissions = st.builds(
    Permissions,
    mode=st.sampled_from(MODES),
    sandbox=st.sampled_from([None, READ_ONLY]),
    tools=st.none() | st.frozensets(st.sampled_from(KINDS)),
)
# What happens in a tree: an agent joins under one of the actors, an actor's permissions change, or one acts.
steps = st.lists(
    st.one_of(
        st.tuples(st.just("join"), st.integers(0, 20), random_permissions),
        st.tuples(st.just("change"), st.integers(0, 20), random_permissions),
        st.tuples(st.just("act"), st.integers(0, 20), st.sampled_from(KINDS)),
    ),
    max_size=25,
)


class Tree:
    """Actors of one session, whose agents' questions get a no from the user after all agents have tried to answer."""

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self.interpreter, self.session = interpreter, interpreter.session
        self.actors: list[Actor] = []
        self.alone: dict[tuple[Permissions, str], str] = {}  # what happens to an agent that acts for no one

    def act(self, actor: Actor, kind: str) -> str:
        """Do it; whether it ran, was asked about, or was refused."""
        asked, ran = list[Question](), list[str]()

        def decline(question: Question) -> Answer:
            asked.append(question)
            for each in self.actors:
                if each.kind == "agent":
                    with pytest.raises(NotPermittedError):
                        self.session.answer(question.id, APPROVE, by=each)
            return Answer("refuse")

        tool = Tool(kind, "", {"type": "object"}, lambda given: ran.append(kind), kind) if kind != "block" else None  # type: ignore[arg-type]
        action: Action = ToolCall(tool, {}) if tool is not None else Block("echo", "hello")
        with self.session.questions.answerable(["block", "call"], decline):
            self.session.perform(action, actor).result()
        is_done = action.outcome == "done"
        assert is_done == bool(ran) or kind == "block"
        return "ran" if is_done else "asked" if asked else "refused"

    def act_alone(self, permissions: Permissions, kind: str) -> str:
        if (permissions, kind) not in self.alone:
            self.alone[permissions, kind] = self.act(self.session.add_actor("agent", permissions), kind)
        return self.alone[permissions, kind]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    interpreter = OpenInterpreter(workspace=str(tmp_path_factory.mktemp("tree")), conversation_history=False)
    interpreter.computer.languages.append(Echo)
    yield Tree(interpreter)
    interpreter.reset()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(random_permissions, steps)
def test_no_descendant_does_what_an_ancestor_could_not(tree: Tree, first: Permissions, steps: list[Any]) -> None:
    """Whatever an agent does, each of those it acts for could do alone, with the permissions of that moment."""
    tree.actors = [tree.session.add_actor("user", first)]
    for step, place, value in steps:
        actor = tree.actors[place % len(tree.actors)]
        if step == "join":
            tree.actors.append(actor.child("agent", value))
        elif step == "change":
            actor.replace_permissions(value)
        elif actor.kind == "agent":
            happened = tree.act(actor, value)
            for above in actor.chain():
                assert STRICTNESS[happened] >= STRICTNESS[tree.act_alone(above.own_permissions, value)], above
