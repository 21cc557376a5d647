"""Recorded events: numbered and with ids, in the journal and in memory, across kills and restarts."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from interpreter.messages import Fold
from interpreter.session import Event, Ids, PlanStep, Publisher
from interpreter.session.journal import SavedSession
from model_server import text, tool_call

__all__ = ["chatting"]


def entries(interpreter: OpenInterpreter) -> list[dict[str, Any]]:
    assert interpreter.journal.path is not None
    return [json.loads(line) for line in (interpreter.journal.path / "journal.jsonl").read_text().splitlines()]


def texts(events: list[Event]) -> list[tuple[int, str]]:
    """The full texts of messages, by number."""
    found: dict[int, str] = {}
    for event in events:
        if event.kind in ("message", "code") and isinstance(event.data.get("content"), str):
            found[event.number] = found.get(event.number, "") + event.data["content"]
    return list(found.items())


def test_events_and_entries_have_turn_action_and_actor_ids(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("echo", "hello"), text("Done."), auto_run=True)
    interpreter.chat("go", display=False)
    events = interpreter.session.log.read()
    (turn,) = {event.ids.turn for event in events}
    assert turn and {event.ids.actor for event in events} == {"agent"}
    (action,) = {event.ids.action for event in events if event.kind == "action"} - {turn}
    assert {event.ids.action for event in events if event.kind == "code"} == {turn}  # from its first token
    assert {event.ids.action for event in events if event.kind == "console"} == {action}
    kept = entries(interpreter)
    assert {entry["turn"] for entry in kept if entry["event"] in ("message", "block", "ended", "action")} == {turn}
    states = [(entry["kind"], entry["state"]) for entry in kept if entry["event"] == "action"]
    block = [("block", "begun"), ("block", "running"), ("block", "ended")]
    assert states == [("turn", "begun"), ("turn", "running"), *block, ("turn", "ended")]
    numbers = [entry["n"] for entry in kept if "n" in entry]
    assert numbers == sorted(numbers)


def test_buffered_text_is_recorded_before_the_next_event(chatting: Chatting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interpreter.session.journal.file.WRITE_INTERVAL", 1000.0)
    interpreter, _ = chatting(text("One."))
    interpreter.chat("first", display=False)
    fold = Fold(lambda: interpreter.messages)
    publisher = Publisher(interpreter.session.log, Ids("turn"), fold, interpreter.journal)
    interpreter.journal.begin_turn(fold, publisher.ids)
    used = {"input_tokens": 1, "output_tokens": 1}
    for piece in ("Two", " words"):
        list(publisher.publish({"role": "assistant", "type": "message", "content": piece}))
    list(publisher.publish({"role": "computer", "type": "status", "format": "usage", "content": used}))
    list(publisher.close())
    numbers = [entry["n"] for entry in entries(interpreter) if "n" in entry]
    assert numbers == sorted(numbers)


def test_user_messages_and_changes_by_scripts_are_events(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("One."), text("Two."))
    interpreter.chat("first", display=False)
    assert [said for _, said in texts(interpreter.session.log.read())] == ["first", "One."]
    interpreter.messages[0]["content"] = "changed"
    interpreter.chat("second", display=False)
    events = interpreter.session.log.read()
    (change,) = [event for event in events if event.kind == "messages"]
    assert change.data["at"] == 0 and change.data["messages"][0]["content"] == "changed"
    assert (events[-1].data["kind"], events[-1].data["state"]) == ("turn", "ended")


def test_events_are_the_same_without_a_journal(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("One."), conversation_history=False)
    interpreter.chat("first", display=False)
    assert [said for _, said in texts(interpreter.session.log.read())] == ["first", "One."]


def test_a_resumed_session_replays_and_continues_numbering(chatting: Chatting) -> None:
    before, _ = chatting(tool_call("echo", "hello"), text("Done."), auto_run=True)
    before.chat("go", display=False)
    path, last = before.journal.path, before.session.log.last
    old = texts(before.session.log.read())
    assert path is not None
    before.journal.close()
    after, _ = chatting(text("Again."))
    after.journal.resume(path.name)
    assert texts(after.session.log.read()) == old
    after.chat("more", display=False)
    assert texts(after.session.log.read())[: len(old)] == old
    assert [said for _, said in texts(after.session.log.read(last))] == ["more", "Again."]
    middle = old[1][0]
    assert texts(after.session.log.read(middle))[0] == old[2]


KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from interpreter import OpenInterpreter
from model_server import ModelServer, tool_call

server = ModelServer([tool_call("python", "import os, signal\\nprint('begun', flush=True)\\nwhile True: pass")]).start()
oi = OpenInterpreter(auto_run=True, workspace=sys.argv[1])
oi.llm.api_base, oi.llm.api_key = server.base_url, "key"
for chunk in oi.chat("go", display=False, stream=True):
    if "begun" in str(chunk.get("content")) and chunk["type"] == "console":
        print(oi.journal.id, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_an_action_open_during_a_kill_is_marked_lost(tmp_path: Path) -> None:
    code = KILLED.format(tests=str(Path(__file__).parent.parent))
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    interpreter = OpenInterpreter(workspace=str(tmp_path))
    session = interpreter.journal.resume(done.stdout.strip())
    assert [action["kind"] for action in session.open_actions.values()] == ["turn", "block"]
    lost = [event for event in interpreter.session.log.read() if event.data.get("outcome") == "lost"]
    assert [event.ids.action for event in lost] == [action["action"] for action in session.open_actions.values()]
    assert all(event.number > session.last_number for event in lost)
    interpreter.journal.close()
    again = SavedSession.open(session.path)
    assert again.open_actions == {} and again.blocks[-1].ended == "lost"


def test_journals_of_earlier_versions_open_and_replay(chatting: Chatting, tmp_path: Path) -> None:
    """They have neither numbers nor ids."""
    interpreter, _ = chatting(tool_call("echo", "hello"), text("Done."), auto_run=True)
    interpreter.chat("go", display=False)
    path = interpreter.journal.path
    assert path is not None
    interpreter.journal.close()
    old = [{key: value for key, value in entry.items() if key not in ("n", "turn", "action", "actor")}
           for entry in map(json.loads, (path / "journal.jsonl").read_text().splitlines())
           if entry["event"] not in ("action", "answer")]  # fmt: skip
    (path / "journal.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in old))
    after, _ = chatting(text("Again."))
    session = after.journal.resume(path.name)
    assert session.messages == interpreter.messages and session.open_actions == {}
    assert [said for _, said in texts(after.session.log.read())] == ["go", "hello", "Done."]


def test_a_plan_is_an_event(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("One."))
    interpreter.chat("first", display=False)
    steps = [PlanStep("Read the file", "done"), PlanStep("Plot it", "running"), PlanStep("Explain it")]
    event = interpreter.session.plan(steps, interpreter.agent.actor)
    assert event.chunk is None  # 0.4.3 has no such chunk
    assert [(step["text"], step["state"]) for step in event.data["steps"]] == [tuple(step) for step in steps]
    assert entries(interpreter)[-1]["event"] == "plan" and entries(interpreter)[-1]["n"] == event.number
    assert interpreter.session.log.read(event.number - 1) == [event]


def test_all_readers_get_events_in_the_same_order(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("echo", "hello"), text("Done."), auto_run=True)
    seen: list[list[Event]] = [[], []]

    def follow(into: list[Event]) -> Callable[[], None]:
        thread = threading.Thread(target=lambda: into.extend(interpreter.session.events()))
        thread.start()
        return lambda: thread.join(20)

    joins = [follow(into) for into in seen]
    interpreter.chat("go", display=False)
    interpreter.session.log.close()
    for join in joins:
        join()
    whole = [
        "".join(str(event.data.get("content", "")) for event in each)
        for each in (*seen, interpreter.session.log.read())
    ]
    assert whole[0] == whole[1] == whole[2]
    numbers = [event.number for event in seen[0]]
    assert numbers == sorted(numbers) and set(numbers) == set(range(1, interpreter.session.log.last + 1))
