"""Earlier conversations at a real terminal: choosing, resuming, branching, and running their blocks again."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from interpreter.session.journal import (
    SavedSession,
    Summary,
    listed,
)
from model_server import ModelServer, text, tool_call
from terminal.person import ENTER, PROGRAM, someone

pytestmark = pytest.mark.usefixtures("no_strays")
QUESTION = "Run? [y]es  [n]o"
F5, DOWN, ESCAPE = "\x1b[15~", "\x1b[B", "\x1b"


@pytest.fixture
def root(home: Path) -> Path:
    return home / ".config" / "open-interpreter" / "conversations"


def save_session(
    root: Path,
    name: str,
    *said: str,
    folder: str = "/somewhere",
    time: float = 1_000.0,
    more: Sequence[dict[str, str]] = (),
) -> None:
    """Write a session's journal: each user message with an answer, then more messages."""
    entries: list[dict[str, object]] = [
        {"event": "session", "time": time, "id": name, "title": said[0], "folder": folder, "model": "gpt-4o"}
    ]
    messages = [
        {"role": role, "type": "message", "content": words}
        for said_words in said
        for role, words in (("user", said_words), ("assistant", f"Answer to {said_words}."))
    ]
    messages += more
    entries += [{"event": "message", "time": time, "at": at, "message": m} for at, m in enumerate(messages)]
    (root / name).mkdir(parents=True)
    (root / name / "journal.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def only_session(root: Path) -> Summary:
    [row] = listed(root)
    return row


def last_request(server: ModelServer) -> list[str]:
    return [str(message["content"]) for message in server.requests[-1].messages]


def test_a_resumed_conversation_can_rebuild_its_variables(root: Path) -> None:
    replies = [
        text("I will keep it.\n\n").then(tool_call("python", "x = 41\nprint('kept')")),
        text("**Kept.**"),
        tool_call("python", "print(x + 1)"),
        text("It is there again."),
    ]
    with ModelServer(replies) as server:
        with someone(server=server) as person:
            person.says("Keep a number")
            person.answers(QUESTION, "y")
            person.sees("Kept.")
            assert person.leaves() == 0
        row = only_session(root)
        with someone("--resume", row.id[:3], server=server) as person:
            person.answers("Restore them?", "n")
            person.sees("F5 (or %rerun)")
            for shown in ("> Keep a number", "I will keep it.", "── python", "x = 41", "kept", "Kept."):
                assert shown in person.screen
            person.at_prompt()
            person.types(F5)
            person.answers(QUESTION, "y")
            person.sees("1 of 1 blocks were run again.")
            person.says("Add one")
            person.answers(QUESTION, "y", times=2)
            person.sees("42")
            person.sees("It is there again.")
            assert person.leaves() == 0
    notes = [content for content in last_request(server) if "was resumed on" in content]
    assert len(notes) == 1 and "run 1 of the 1 successful blocks" in notes[0]
    session = SavedSession.open(row.path)
    assert only_session(root).id == row.id
    assert [message["content"] for message in session.messages if message["role"] == "user"] == [
        "Keep a number",
        "Add one",
    ]


def test_typing_filters_the_list_of_conversations(root: Path) -> None:
    save_session(root, "aaaa0001", "Paint the fence", time=1_000)
    save_session(root, "aaaa0002", "Count the sheep", time=2_000)
    save_session(root, "aaaa0003", "Sort the photos", time=3_000)
    with ModelServer([text("Counted.")]) as server, someone("--conversations", server=server) as person:
        person.sees("Which conversation?")
        rows = [row for row in person.rows if "gpt-4o" in row]
        assert [row[2:].split("  ")[0] for row in rows] == [
            "Sort the photos",
            "Count the sheep",
            "Paint the fence",
        ]
        assert "1970-01" in rows[0] and "/somewhere" in rows[0]
        person.types("sheep")
        person.wait_until(lambda: "Paint the fence" not in person.screen, "only what was searched")
        person.types(ENTER)
        person.sees("Answer to Count the sheep.")
        person.says("Go on")
        person.sees("Counted.")
        assert person.leaves() == 0
    assert "Count the sheep" in last_request(server)[1]
    assert listed(root)[0].id == "aaaa0002"


@pytest.mark.full
def test_arrow_keys_choose_a_conversation(root: Path) -> None:
    save_session(root, "aaaa0001", "Paint the fence", time=1_000)
    save_session(root, "aaaa0002", "Count the sheep", time=2_000)
    with ModelServer([]) as server, someone("--resume", server=server) as person:
        person.sees("> Count the sheep")
        person.types(DOWN)
        person.sees("> Paint the fence")
        person.types(ENTER)
        person.sees("Answer to Paint the fence.")
        assert person.leaves() == 0


def test_escape_leaves_the_list(root: Path) -> None:
    save_session(root, "aaaa0001", "Paint the fence")
    before = (root / "aaaa0001" / "journal.jsonl").read_bytes()
    with ModelServer([]) as server, someone("--conversations", server=server) as person:
        person.sees("Paint the fence")
        person.types(ESCAPE)
        assert person.ends() == 0
        assert person.mode_is_restored
    assert (root / "aaaa0001" / "journal.jsonl").read_bytes() == before


def test_a_plain_terminal_chooses_by_number(root: Path) -> None:
    save_session(root, "aaaa0001", "Paint the fence", time=1_000)
    save_session(root, "aaaa0002", "Count the sheep", time=2_000)
    with ModelServer([]) as server, someone("--plain", "--conversations", server=server) as person:
        person.sees("1. Count the sheep")
        person.answers("Number (Enter to cancel)", "2")
        person.sees("Answer to Paint the fence.")
        assert person.leaves() == 0


@pytest.mark.full
def test_only_the_end_of_a_long_conversation_is_shown(root: Path) -> None:
    save_session(root, "aaaa0001", *(f"question number {n}" for n in range(300)))
    with ModelServer([]) as server, someone("--resume", "aaaa", server=server, lines=20) as person:
        person.sees("Answer to question number 299.")
        person.at_prompt()
        assert "earlier messages are not shown here" in person.screen
        assert "question number 100." not in person.screen
        assert person.screen.count("Answer to question") < 60
        assert person.leaves() == 0


@pytest.mark.full
def test_an_earlier_table_is_shown_once_and_named_by_undo(root: Path) -> None:
    table = "<table><tr><th>region</th><th>sum</th></tr><tr><td>north</td><td>118</td></tr></table>"
    more = [
        {"role": "user", "type": "message", "content": "Totals"},
        {"role": "assistant", "type": "code", "format": "python", "content": "totals"},
        {"role": "computer", "type": "console", "format": "output", "content": "  region  sum\n0  north  118\n"},
        {"role": "computer", "type": "code", "format": "html", "content": table},
    ]
    save_session(root, "aaaa0001", "Hello", more=more)
    with ModelServer([]) as server, someone("--resume", "aaaa", server=server) as person:
        person.answers("Run the block that built them again?", "n")
        person.at_prompt()
        assert person.screen.count("north") == 1
        person.says("%undo --conversation")
        person.sees("computer table or page")
        assert person.leaves() == 0


def test_a_branch_is_a_separate_conversation(root: Path) -> None:
    with ModelServer([text("One."), text("Two."), text("Three.")]) as server, someone(server=server) as person:
        person.says("First")
        person.sees("One.")
        person.says("%branch a second attempt")
        person.sees("This is now a new conversation")
        person.says("Second")
        person.sees("Two.")
        person.says("%rename the final attempt")
        person.sees("now called: the final attempt")
        person.says("%sessions")
        person.sees("To continue one: %resume ID")
        assert {row.title for row in listed(root)} == {"First", "the final attempt"}
        old = next(row for row in listed(root) if row.title == "First")
        person.says(f"%resume {old.id}")
        person.sees("> First", times=2)
        person.says("Third")
        person.sees("Three.")
        assert person.leaves() == 0
    assert [m["content"] for m in SavedSession.open(old.path).messages] == ["First", "One.", "Third", "Three."]


def test_conversations_of_one_name_show_time_and_folder(root: Path) -> None:
    with ModelServer([text("One.")] * 3) as server, someone(server=server, columns=60) as person:
        for words in ("Same words", "%branch Same words", "%sessions"):
            person.says(words)
        person.sees("To continue one: %resume ID")
        rows = [row for row in person.emulator.everything if re.match(r"[0-9a-f]{8}  Same words", row)]
        assert len(rows) == 2
        assert all(re.search(rf"\d\d \w+ \d\d:\d\d  {Path.cwd().name}", row) for row in rows), rows
        assert person.leaves() == 0


def test_an_undone_turn_stays_undone(root: Path) -> None:
    with ModelServer([text("One."), text("Two.")]) as server, someone(server=server) as person:
        person.says("First")
        person.sees("One.")
        person.says("Second")
        person.sees("Two.")
        person.says("%undo")
        person.sees("Undone")
        person.at_prompt()
        assert [m["content"] for m in SavedSession.open(only_session(root).path).messages] == ["First", "One."]
        assert person.leaves() == 0


def test_a_conversation_open_elsewhere_cannot_be_resumed(root: Path) -> None:
    with ModelServer([text("One.")]) as server, someone(server=server) as person:
        person.says("First")
        person.sees("One.")
        with someone("--resume", only_session(root).id, server=server) as another:
            assert another.ends() == 1
            assert "Another interpreter has this conversation open" in another.screen
        assert person.leaves() == 0


def run(*arguments: str, said: str = "", server: ModelServer | None = None) -> subprocess.CompletedProcess[str]:
    where = ["--api_base", server.base_url, "--api_key", "key"] if server else []
    program = [sys.executable, "-c", PROGRAM, *where, *arguments]
    return subprocess.run(program, input=said, capture_output=True, text=True, timeout=60)


def test_a_conversation_can_be_continued_without_a_terminal(root: Path) -> None:
    save_session(root, "aaaa0001", "Paint the fence")
    with ModelServer([text("Red.")]) as server:
        done = run("--resume", "aaaa", "--plain", said="Which colour?", server=server)
    assert (done.returncode, done.stdout.strip()) == (0, "Red.")
    assert [m["content"] for m in SavedSession.open(root / "aaaa0001").messages][-2:] == ["Which colour?", "Red."]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--conversations"], "needs a terminal"),
        (["--resume"], "needs a terminal"),
        (["--resume", "zzzz"], "There is no conversation zzzz"),
        (["--continue"], "There is no conversation in"),
    ],
)
def test_invalid_options_print_an_error(root: Path, arguments: list[str], words: str) -> None:
    save_session(root, "aaaa0001", "Paint the fence")
    done = run(*arguments, said="Hello")
    assert done.returncode in (1, 2) and words in done.stderr
