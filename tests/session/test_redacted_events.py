"""Remote readers get events without secrets, live and in a replay, however the output was split."""

from __future__ import annotations

import threading
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpreter import OpenInterpreter
from interpreter.llm.secrets import redact
from interpreter.session import Event, EventLog, Ids, Publisher
from interpreter.session.events import redacted

KEY = (
    "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEA1234567890abcdefghij\n" * 3 + "-----END RSA PRIVATE KEY-----"
)
TOKEN = "ghp_" + "a1B2c3D4e5" * 4
LINES = ["plain\n", f"token {TOKEN}\n", f"Authorization: Bearer {TOKEN}\n", f"{KEY}\n", "12 %\r", "no newline"]


def texts(events: list[Event]) -> str:
    return "".join(event.data.get("content", "") for event in events if isinstance(event.data.get("content"), str))


def split_at(text: str, places: list[int]) -> list[str]:
    edges = [0, *sorted({place % (len(text) + 1) for place in places}), len(text)]
    return [text[start:end] for start, end in pairwise(edges) if start < end]


@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=6), st.lists(st.integers(0, 2000), max_size=12), st.data())
def test_secrets_are_redacted_however_the_text_is_split(
    lines: list[str], places: list[int], data: st.DataObject
) -> None:
    whole = "".join(lines)
    log = EventLog()
    publisher = Publisher(log, Ids())
    for piece in split_at(whole, places):
        list(publisher.publish({"role": "computer", "type": "console", "format": "output", "content": piece}))
    list(publisher.close())
    seen = list(redacted(log.read(), redact))
    assert TOKEN not in texts(seen) and "MIIEow" not in texts(seen)
    assert texts(seen).splitlines()[0] == redact(whole).splitlines()[0]
    at = data.draw(st.integers(0, len(seen) - 1))
    rest = list(redacted(log.read(*seen[at].position), redact))
    assert texts(seen[: at + 1]) + texts(rest) == texts(seen)


def test_a_live_reader_gets_redacted_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "a-very-private-value-1")
    interpreter = OpenInterpreter(workspace=str(tmp_path))
    seen: dict[bool, list[Event]] = {True: [], False: []}
    readers = [
        threading.Thread(target=lambda redact=redact: seen[redact].extend(interpreter.session.events(redact=redact)))  # type: ignore[misc]
        for redact in seen
    ]
    for reader in readers:
        reader.start()
    interpreter.computer.run("shell", "printf a-very-; sleep 0.1; echo private-value-1; echo after")
    interpreter.session.close()
    for reader in readers:
        reader.join(20)
    interpreter.computer.terminate()
    assert "a-very-private-value-1" in texts(seen[False])
    assert texts(seen[True]) == "[redacted: value of SHOP_TOKEN]\nafter\n"
