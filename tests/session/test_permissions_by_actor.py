"""Two interpreters on one computer: separate permissions, conversations and checkpoints in one session."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting, chatting
from example_computer_tool import install
from interpreter import OpenInterpreter
from interpreter.app import result_of
from interpreter.app.own_blocks import run_own_block
from interpreter.errors import SandboxUnavailableError, UndoError
from interpreter.policy.review import CONTAIN
from interpreter.sandbox import bubblewrap
from interpreter.session import APPROVE, Answer, Block, Question
from model_server import ModelServer, text, tool_call
from waiting import until

__all__ = ["chatting"]
pytestmark = pytest.mark.usefixtures("no_strays")
LIMIT = 20
Guest = Callable[..., OpenInterpreter]


@pytest.fixture
def sandbox_available() -> None:
    """Skip the test where no sandbox is available."""
    try:
        bubblewrap.available()
    except SandboxUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def guest_of() -> Iterator[Guest]:
    """`guest_of(owner, reply, ..., setting=value)`: another interpreter on the owner's computer."""
    with ExitStack() as ending:

        def join(owner: OpenInterpreter, *replies: Any, **settings: Any) -> OpenInterpreter:
            server = ModelServer(replies=list(replies)).start()
            ending.callback(server.close)
            guest = OpenInterpreter(computer=owner.computer, workspace=owner.workspace, stream_all=True, **settings)
            guest.llm.api_base, guest.llm.api_key, guest.llm.max_retries = server.base_url, "key", 0
            ending.callback(guest.reset)
            return guest

        yield join


@pytest.fixture
def owner(chatting: Chatting, tmp_path: Path) -> OpenInterpreter:
    made, _ = chatting(*owners_replies(), workspace=str(tmp_path), auto_run=True)
    return made


def owners_replies() -> list[Any]:
    return [tool_call("shell", "echo owner > of_owner"), text("Done.")]


def printed(messages: list[Any]) -> str:
    return "".join(str(message["content"]) for message in messages if message["type"] == "console")


def chat(interpreter: OpenInterpreter, words: str = "go") -> list[Any]:
    return list(interpreter.chat(words, display=False, stream=True))


# -- modes and sandboxes -------------------------------------------------------------------------------------------------

WRITE = (
    "try:\n    open('made', 'w').write('x')\nexcept OSError as error:\n    print(type(error).__name__, error.strerror)"
)


@pytest.mark.usefixtures("sandbox_available")
def test_a_guests_user_command_cannot_write_in_plan_mode(
    owner: OpenInterpreter, guest_of: Guest, tmp_path: Path
) -> None:
    guest = guest_of(owner, mode="plan")
    result_of(run_own_block(guest, "python", WRITE, shared=False))
    assert not (tmp_path / "made").exists()
    result_of(run_own_block(owner, "python", WRITE, shared=False))
    assert (tmp_path / "made").exists()


@pytest.mark.usefixtures("sandbox_available")
def test_a_guest_in_plan_mode_cannot_write(owner: OpenInterpreter, guest_of: Guest, tmp_path: Path) -> None:
    owner.computer.run("python", "x = 'of the owner'")
    replies = [tool_call("python", f"x = 'of the guest'\n{WRITE}"), tool_call("python", "print(x)"), text("So.")]
    guest = guest_of(owner, *replies, mode="plan")
    chunks = chat(guest)
    assert not (tmp_path / "made").exists() and "Read-only file system" in printed(guest.messages)
    assert "of the guest" in printed(guest.messages)
    assert printed(owner.computer.run("python", "print(x)")) == "of the owner\n"
    told = [str(chunk["content"]) for chunk in chunks if chunk.get("format") == "notice"]
    assert len([words for words in told if "separate runtimes" in words]) == 1


@pytest.mark.usefixtures("sandbox_available")
def test_the_owner_can_still_write_after_a_guest_in_plan_mode(
    owner: OpenInterpreter, guest_of: Guest, tmp_path: Path
) -> None:
    chat(guest_of(owner, tool_call("python", WRITE), text("So."), mode="plan"))
    chat(owner)
    assert (tmp_path / "of_owner").read_text() == "owner\n"


@pytest.mark.usefixtures("sandbox_available")
def test_the_owners_sandbox_does_not_apply_to_a_guest(
    chatting: Chatting, guest_of: Guest, tmp_path: Path, home: Path
) -> None:
    owner, _ = chatting(workspace=str(tmp_path), sandbox="workspace", auto_run=True)
    code = f"open('{home}/out', 'w').write('x')"
    guest = guest_of(owner, tool_call("python", code), text("So."), auto_run=True)
    chat(guest)
    assert (home / "out").exists()
    (home / "out").unlink()
    owner.computer.run("python", code)
    assert not (home / "out").exists()


def test_guests_with_the_same_sandbox_share_the_runtimes(owner: OpenInterpreter, guest_of: Guest) -> None:
    owner.computer.run("python", "x = 'shared'")
    guest = guest_of(owner, tool_call("python", "print(x)"), text("So."), auto_run=True)
    chunks = chat(guest)
    assert printed(guest.messages) == "shared\n"
    assert not [chunk for chunk in chunks if "separate runtimes" in str(chunk.get("content"))]


@pytest.mark.usefixtures("sandbox_available")
def test_a_guest_can_choose_a_sandbox_at_the_approval(owner: OpenInterpreter, guest_of: Guest, home: Path) -> None:
    """The block would otherwise run in the owner's runtimes, without a sandbox."""
    guest = guest_of(owner, tool_call("python", f"open('{home}/out', 'w').write('x')"), text("So."))

    def contain(question: Question) -> Answer:
        return Answer(CONTAIN)

    with owner.session.questions.answerable(["block"], contain):
        chat(guest)
    assert guest.sandbox == "workspace" and not (home / "out").exists()


def test_a_guest_is_asked_even_if_its_owner_is_not(owner: OpenInterpreter, guest_of: Guest) -> None:
    guest = guest_of(owner, tool_call("shell", "echo hi"), text("So."))
    asked: list[Question] = []

    def refuse(question: Question) -> Answer:
        asked.append(question)
        return Answer("refuse")

    with owner.session.questions.answerable(["block"], refuse):
        chat(guest)
        chat(owner)
    assert [question.actor for question in asked] == [guest.agent.actor.id] and printed(guest.messages) == ""
    assert guest.agent.actor.id != owner.agent.actor.id


# -- tool calls --------------------------------------------------------------------------------------------------------

ACT = "try:\n    print(computer.example.press('{0}'))\nexcept PermissionError as error:\n    print(error)"


@pytest.mark.usefixtures("sandbox_available")
def test_a_tool_call_has_the_permissions_of_the_actor(
    owner: OpenInterpreter, guest_of: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    guest = guest_of(owner, tool_call("python", ACT.format("guest")), text("So."), mode="plan")
    chat(guest)
    assert "plan mode" in printed(guest.messages)
    assert "plan mode" not in printed(owner.computer.run("python", ACT.format("owner")))


@pytest.mark.usefixtures("sandbox_available")
def test_a_background_block_keeps_the_permissions_of_its_actor(
    owner: OpenInterpreter, guest_of: Guest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(monkeypatch)
    flag, out = tmp_path / "go", tmp_path / "out"
    code = (
        "import os, time\nprint('here', flush=True)\n"
        f"while not os.path.exists('{flag}'): time.sleep(0.02)\n"
        f"try:\n    said = computer.example.press('x')\nexcept PermissionError as error:\n    said = str(error)\n"
        f"open('{out}', 'w').write(str(said))"
    )
    for chunk in owner.computer.run("python", code, stream=True):
        if chunk.get("content") == "here\n":
            owner.computer.runtimes.detach()
    chat(guest_of(owner, tool_call("python", "print('hi')"), text("So."), mode="plan"))
    flag.touch()
    until(lambda: out.exists() and out.read_text(), "the call of the block in the background", LIMIT)
    assert "plan mode" not in out.read_text()


# -- cancelling ----------------------------------------------------------------------------------------------------------


def test_cancelling_a_waiting_guest_does_not_affect_the_owner(
    owner: OpenInterpreter, guest_of: Guest, tmp_path: Path
) -> None:
    guest = guest_of(owner, tool_call("shell", "echo guest"), text("So."), auto_run=True)
    go = tmp_path / "go"
    code = f"import os, time\nprint(0, flush=True)\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\nprint(4)"
    first = owner.computer.run("python", code, stream=True)
    seen = [next(first)]
    thread = threading.Thread(target=chat, args=[guest], daemon=True)
    thread.start()
    until(lambda: owner.session.lane.waiting > 0, "the guest", LIMIT)
    guest.cancel()
    thread.join(LIMIT)
    assert not thread.is_alive() and printed(guest.messages) == ""
    go.touch()
    assert printed([*seen, *first]).replace("None", "").endswith("4\n")


# -- one timeline, two conversations ---------------------------------------------------------------------------------------


def chat_with_both(owner: OpenInterpreter, guest_of: Guest) -> OpenInterpreter:
    """The owner chats, then a guest."""
    chat(owner, "owner's request")
    guest = guest_of(owner, tool_call("shell", "echo guest > of_guest"), text("So."), auto_run=True)
    chat(guest, "guest's request")
    return guest


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_checkpoints_of_both_are_in_one_timeline(owner: OpenInterpreter, guest_of: Guest) -> None:
    guest = chat_with_both(owner, guest_of)
    assert guest.timeline is owner.timeline
    points = [(point.kind, point.label, point.actor) for point in owner.checkpoints]
    assert points == [
        ("turn", "owner's request", ""),
        ("block", "echo owner > of_owner", ""),
        ("turn", "guest's request", guest.agent.actor.id),
        ("block", "echo guest > of_guest", guest.agent.actor.id),
    ]


def test_a_guest_undoes_only_its_own_work(owner: OpenInterpreter, guest_of: Guest, tmp_path: Path) -> None:
    guest = chat_with_both(owner, guest_of)
    before = list(owner.messages)
    guest.undo()
    assert files(tmp_path) == ["of_owner"] and guest.messages == [] and owner.messages == before
    guest.redo()
    assert files(tmp_path) == ["of_guest", "of_owner"] and guest.messages[-1]["content"] == "So."


def test_undoing_anothers_work_is_refused_without_an_answer(
    owner: OpenInterpreter, guest_of: Guest, tmp_path: Path
) -> None:
    guest = chat_with_both(owner, guest_of)
    before = [list(owner.messages), list(guest.messages)]
    with pytest.raises(UndoError, match=f"what {guest.agent.actor.id} did"):
        owner.undo()
    with pytest.raises(UndoError):
        guest.undo(2)
    assert files(tmp_path) == ["of_guest", "of_owner"] and [owner.messages, guest.messages] == before


def test_undoing_anothers_work_asks_first(owner: OpenInterpreter, guest_of: Guest, tmp_path: Path) -> None:
    guest = chat_with_both(owner, guest_of)
    asked: list[Question] = []

    def handler(question: Question) -> Answer:
        asked.append(question)
        return Answer(APPROVE)

    with owner.session.questions.answerable(["confirm"], handler):
        owner.undo(2)
    assert [question.kind for question in asked] == ["confirm"] and asked[0].actor == owner.user.id
    assert files(tmp_path) == [] and owner.messages == [] and guest.messages == []
    with owner.session.questions.answerable(["confirm"], handler):
        owner.redo(2)
    assert files(tmp_path) == ["of_guest", "of_owner"]
    assert [owner.messages[-1]["content"], guest.messages[-1]["content"]] == ["Done.", "So."]


def test_undo_does_not_cut_a_conversation_that_is_responding(
    owner: OpenInterpreter, guest_of: Guest, tmp_path: Path
) -> None:
    guest = chat_with_both(owner, guest_of)
    owner.auto_run = False
    waiting = threading.Event()

    def handler(question: Question) -> Answer:
        waiting.set()
        assert done.wait(LIMIT)
        return Answer("refuse")

    done = threading.Event()
    server = ModelServer(replies=[tool_call("shell", "echo again"), text("Done.")]).start()
    owner.llm.api_base = server.base_url
    with owner.session.questions.answerable(["block"], handler):
        thread = threading.Thread(target=chat, args=[owner, "more"], daemon=True)
        thread.start()
        assert waiting.wait(LIMIT)
        with (
            owner.session.questions.answerable(["confirm"], lambda question: Answer(APPROVE)),
            pytest.raises(Exception, match="responding"),
        ):
            guest.undo(3)
        assert "more" in [message["content"] for message in owner.messages]
        done.set()
        thread.join(LIMIT)
    server.close()
    assert not thread.is_alive() and files(tmp_path) == ["of_guest", "of_owner"]


def test_resetting_a_guest_does_not_affect_the_owner(owner: OpenInterpreter, guest_of: Guest) -> None:
    owner.computer.run("python", "x = 'kept'")
    guest = chat_with_both(owner, guest_of)
    before = list(owner.messages)
    guest.reset()
    assert guest.messages == [] and owner.messages == before
    assert printed(owner.computer.run("python", "print(x)")) == "kept\n"
    owner.undo()  # the block above


def test_resetting_the_owner_drops_its_guests_checkpoints(owner: OpenInterpreter, guest_of: Guest) -> None:
    guest = chat_with_both(owner, guest_of)
    owner.reset()
    assert owner.checkpoints == [] and len(owner.timeline.conversations) == 1
    with pytest.raises(UndoError):
        guest.undo()


def test_a_resumed_session_does_not_mix_the_conversations(owner: OpenInterpreter, guest_of: Guest) -> None:
    """The guest's checkpoints refer to messages that the owner's journal doesn't have."""
    chat(owner, "owner's request")
    guest = guest_of(owner, tool_call("shell", "echo guest > of_guest"), text("So."), auto_run=True)
    chat(guest, "guest's request")
    journal = owner.journal.id
    messages = list(owner.messages)
    owner.journal.close()
    assert journal is not None
    again = OpenInterpreter(workspace=owner.workspace)
    again.journal.resume(journal)
    last = again.checkpoints[-1]
    assert last.actor == guest.agent.actor.id
    again.restore(last.id, parts=["conversation"])
    assert again.messages == messages
    again.journal.close()


def test_a_guests_direct_blocks_have_its_own_actor(owner: OpenInterpreter, guest_of: Guest) -> None:
    guest = guest_of(owner, auto_run=True)
    guest.session.perform(Block("shell", "echo x > direct"), guest.user).result()
    (event,) = [e for e in owner.session.log.read() if e.kind == "action" and e.data["state"] == "begun"]
    assert event.ids.actor == guest.user.id != owner.user.id
