"""The event log: every reader sees the same sequence, even if it stops and resumes."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpreter.messages import Chunk, Fold, Message
from interpreter.session import Event, EventLog, Ids, Publisher
from interpreter.session import events as module
from waiting import until

PUBLISHERS = 3
READERS = 3

SAYS: list[Chunk] = [
    {"role": "assistant", "type": "message"},
    {"role": "assistant", "type": "code", "format": "python"},
    {"role": "computer", "type": "console", "format": "output"},
    {"role": "computer", "type": "console", "format": "output", "stream": "stderr"},
]
ALONE: list[Chunk] = [
    {"role": "computer", "type": "console", "format": "active_line", "content": 3},
    {"role": "computer", "type": "image", "format": "base64.png", "content": "aGVsbG8="},
    {"role": "computer", "type": "status", "format": "notice", "content": {"text": "careful"}},
    {"role": "computer", "type": "confirmation", "format": "execution", "content": {"type": "code"}},
    {"role": "assistant", "type": "message", "end": True},
]

chunks = st.one_of(
    st.builds(lambda kind, text: {**kind, "content": text}, st.sampled_from(SAYS), st.text(max_size=5)),
    st.sampled_from(ALONE),
)
publishings = st.tuples(st.just("publish"), st.integers(0, PUBLISHERS - 1), chunks)
readings = st.tuples(st.just("read"), st.integers(0, READERS - 1), st.integers(0, 12))
steps = st.lists(st.one_of(publishings, publishings, readings), max_size=60)


class Reader:
    """Reads some events, is disconnected, and resumes at its position."""

    def __init__(self) -> None:
        self.position: tuple[int, int | None] = (0, None)
        self.seen: list[Event] = []

    def read(self, log: EventLog, most: int | None = None) -> None:
        for event in log.read(*self.position)[:most]:
            self.seen.append(event)
            self.position = event.position


def flattened(events: Iterable[Event]) -> list[tuple[Any, ...]]:
    """The content of events, independent of how their text is cut: text by character, the rest as a whole."""
    out: list[tuple[Any, ...]] = []
    for event in events:
        content = event.data.get("content")
        rest = {name: value for name, value in event.data.items() if name != "content"}
        fields = (event.number, event.kind, repr(sorted(rest.items())), event.ids)
        if isinstance(content, str):
            out += [(*fields, event.offset + place, letter) for place, letter in enumerate(content)]
        else:
            out.append((*fields, event.offset, repr(content)))
    return out


def texts(events: Iterable[Event]) -> dict[int, str]:
    """The text by the number of the event it started in."""
    began: dict[int, int] = {}
    found: dict[int, str] = {}
    for event in events:
        first = began.setdefault(event.number, began.get(event.data.get("continues", 0), event.number))
        if isinstance(event.data.get("content"), str) and event.chunk is not None and event.chunk["type"] != "image":
            found[first] = found.get(first, "") + event.data["content"]
    return found


@given(steps)
def test_readers_that_stop_and_resume_see_the_same_events(steps: list[tuple[str, int, Any]]) -> None:
    log = EventLog()
    publishers = [Publisher(log, Ids("", f"a{number}")) for number in range(PUBLISHERS)]
    readers = [Reader() for _ in range(READERS)]
    for what, who, details in steps:
        if what == "publish":
            list(publishers[who].publish({**details}))
        else:
            readers[who].read(log, details)
    for publisher in publishers:
        list(publisher.close())
    whole = log.read()
    for reader in readers:
        reader.read(log)
        assert flattened(reader.seen) == flattened(whole)
    numbers = list(dict.fromkeys(event.number for event in whole))
    assert numbers == list(range(1, log.last + 1))


@given(steps)
def test_interleaved_publishers_keep_their_texts_intact(steps: list[tuple[str, int, Any]]) -> None:
    log = EventLog()
    messages: list[list[Message]] = [[] for _ in range(PUBLISHERS)]
    folds = [Fold(lambda here=here: here) for here in messages]
    publishers = [Publisher(log, Ids("", f"a{who}"), folds[who]) for who in range(PUBLISHERS)]
    for what, who, details in steps:
        if what == "publish" and details["type"] in ("message", "code"):
            list(publishers[who].publish({**details}))
    for publisher in publishers:
        list(publisher.close())
    whole = log.read()
    for who in range(PUBLISHERS):
        mine = [event for event in whole if event.ids.action == f"a{who}"]
        assert list(texts(mine).values()) == [message["content"] for message in messages[who]]


@settings(max_examples=40)
@given(steps)
def test_a_consumer_can_resume_from_any_published_event(steps: list[tuple[str, int, Any]]) -> None:
    """What `publish` returns has a position in the log: reading from there misses and repeats nothing."""
    log = EventLog()
    publishers = [Publisher(log, Ids("", f"a{number}")) for number in range(PUBLISHERS)]
    given_out: list[Event] = []
    for what, who, details in steps:
        if what == "publish":
            given_out += publishers[who].publish({**details})
    for publisher in publishers:
        given_out += publisher.close()
    whole = flattened(log.read())
    for event in given_out:
        number, offset = event.position
        before = [each for each in whole if (each[0], each[-2]) < (number, offset) or _is_start(each, event)]
        assert before + flattened(log.read(number, offset)) == whole


def _is_start(each: tuple[Any, ...], event: Event) -> bool:
    return bool(each[0] == event.number and "'start'" in each[2])


def say(publisher: Publisher, text: str) -> list[Event]:
    return list(publisher.publish({"role": "computer", "type": "console", "format": "output", "content": text}))


def test_an_interrupted_text_continues_in_a_linked_event() -> None:
    log = EventLog()
    mine, other = Publisher(log, Ids("", "mine")), Publisher(log, Ids("", "other"))
    say(mine, "one")
    say(other, "between")
    say(mine, "two")
    list(mine.close())
    begun = [event for event in log.read() if event.data.get("start")]
    assert [(event.ids.action, event.data.get("continues")) for event in begun] == [
        ("mine", None),
        ("other", None),
        ("mine", begun[0].number),
    ]
    assert texts(event for event in log.read() if event.ids.action == "mine") == {begun[0].number: "onetwo"}


class Journal:
    """Records the numbers it is given."""

    def __init__(self) -> None:
        self.flattened: list[tuple[int, Any]] = []

    def add(self, chunk: Chunk, number: int, ids: Ids) -> None:
        self.flattened.append((number, chunk.get("content")))


def test_the_journal_gets_the_event_number_of_each_chunk() -> None:
    log, journal = EventLog(), Journal()
    mine = Publisher(log, Ids(), journal=journal)
    say(mine, "one")
    log.publish("plan", {"steps": []})
    say(mine, "two")
    numbers = {event.data["content"]: event.number for event in log.read() if event.data.get("content")}
    assert [entry for entry in journal.flattened if entry[1]] == [(numbers["one"], "one"), (numbers["two"], "two")]


def test_changing_an_event_does_not_affect_other_readers() -> None:
    log = EventLog()
    publisher = Publisher(log, Ids())
    for event in [*say(publisher, "text"), *publisher.publish({**ALONE[2]})]:
        event.data["role"] = "changed"
        event.data.pop("content", None)
    for event in log.read():
        event.data.clear()
    assert texts(log.read()) == {1: "text"}
    assert {event.data["role"] for event in log.read()} == {"computer"}


@pytest.mark.parametrize("size", [1, 7, 1000, 5000])
def test_only_the_end_of_a_long_text_is_kept_and_the_rest_is_marked_omitted(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(module, "MAX_TEXT_LENGTH", 1000)
    log = EventLog()
    publisher, early = Publisher(log, Ids()), Reader()
    whole = "".join(chr(ord("a") + number % 26) for number in range(5000))
    for start in range(0, len(whole), size):
        say(publisher, whole[start : start + size])
        early.read(log)
        if start % 50 or size > 50:
            continue
        assert sum(len(event.data.get("content") or "") for event in log.read()) <= 2000
    assert "".join(event.data.get("content") or "" for event in early.seen) == (
        whole if size <= 1000 else whole[-1000:]
    )
    late = Reader()
    late.read(log)
    (omitted,) = [event.data["omitted"] for event in late.seen if "omitted" in event.data]
    kept = "".join(event.data.get("content") or "" for event in late.seen)
    assert len(kept) >= 1000 and omitted + len(kept) == len(whole) and whole.endswith(kept)
    halfway = log.read(late.seen[0].number, 5)
    assert next(event.data["omitted"] for event in halfway if "omitted" in event.data) == omitted - 5


def test_the_number_of_unmergeable_chunks_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PIECES", 100)
    log = EventLog()
    publisher, reader = Publisher(log, Ids()), Reader()
    for line in range(1000):
        list(publisher.publish({"role": "computer", "type": "console", "format": "active_line", "content": line}))
        reader.read(log)
    assert [event.data["content"] for event in reader.seen if "content" in event.data] == list(range(1000))
    assert len(log.read()) <= 202
    assert log.read()[-1].data["content"] == 999


def test_an_image_is_never_truncated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TEXT_LENGTH", 10)
    log = EventLog()
    picture: Chunk = {"role": "computer", "type": "image", "format": "base64.png", "content": "x" * 100}
    list(Publisher(log, Ids()).publish({**picture}))
    assert [event.data["content"] for event in log.read() if "content" in event.data] == ["x" * 100]


def test_consecutive_images_stay_separate() -> None:
    log = EventLog()
    publisher = Publisher(log, Ids())
    for content in ("first", "second"):
        list(publisher.publish({"role": "computer", "type": "image", "format": "base64.png", "content": content}))
    list(publisher.close())
    assert [event.data["content"] for event in log.read() if "content" in event.data] == ["first", "second"]


def test_old_events_are_dropped_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_EVENTS", 100)
    log, reader = EventLog(), Reader()
    for number in range(1000):
        log.publish("plan", {"number": number})
        if number % 50 == 0:
            reader.read(log)
    reader.read(log)
    assert [event.data["number"] for event in reader.seen] == list(range(1000))
    assert 100 <= len(log.read()) <= 110
    assert log.read()[-1].number == log.last == 1000


def test_old_events_are_dropped_when_the_log_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KEPT_LENGTH", 10_000)
    log = EventLog()
    for number in range(100):
        publisher = Publisher(log, Ids("", str(number)))
        say(publisher, "x" * 900)
        list(publisher.publish({"role": "computer", "type": "status", "content": {"pictures": ["y" * 900]}}))
        list(publisher.close())
    assert len(repr(log.read())) < 20_000
    assert log.read()[-1].number == log.last


# -- readers that follow -----------------------------------------------------------------------------------------------


def test_followers_see_what_concurrent_publishers_publish() -> None:
    log = EventLog()
    seen: list[list[Event]] = [[] for _ in range(4)]
    followers = [_thread(_follow, log, into, every) for every, into in enumerate(seen, 1)]
    publishing = [_thread(_publish, log, who) for who in range(4)]
    for thread in publishing:
        thread.join(60)
    log.close()
    for thread in followers:
        thread.join(60)
        assert not thread.is_alive(), "a reader did not end when the log was closed"
    whole = flattened(log.read())
    assert [flattened(each) == whole for each in seen] == [True] * 4
    for who in range(4):
        mine = [event for event in log.read() if event.ids.action == f"a{who}"]
        said = "".join(f"{who}-{number};" for number in range(300))
        assert "".join(texts(mine).values()) == said


def _thread(function: Any, *args: Any) -> threading.Thread:
    thread = threading.Thread(target=function, args=args, daemon=True)
    thread.start()
    return thread


def _publish(log: EventLog, who: int) -> None:
    publisher = Publisher(log, Ids("", f"a{who}"))
    for number in range(300):
        say(publisher, f"{who}-{number};")
        if number % 37 == who:
            list(
                publisher.publish({"role": "computer", "type": "status", "format": "notice", "content": {"n": number}})
            )
    list(publisher.close())


def _follow(log: EventLog, into: list[Event], every: int) -> None:
    """Follow, with frequent disconnects."""
    position: tuple[int, int | None] = (0, None)
    while True:
        for event in log.follow(*position):
            into.append(event)
            position = event.position
            if len(into) % (every * 17) == 0:
                break
        else:
            return


def test_following_starts_no_threads() -> None:
    log = EventLog()
    log.publish("plan", {})
    before = threading.active_count()
    readers = [log.follow() for _ in range(100)]
    assert [next(reader).number for reader in readers] == [1] * 100
    assert threading.active_count() == before
    for reader in readers:
        reader.close()
    assert not log._wakes


def test_a_waiting_reader_wakes_for_events_and_ends_with_the_log() -> None:
    log = EventLog()
    seen: list[int] = []
    thread = _thread(lambda: seen.extend(event.number for event in log.follow()))
    until(lambda: bool(log._wakes), "the reader")
    log.publish("plan", {})
    log.publish("plan", {})
    log.close()
    thread.join(20)
    assert not thread.is_alive() and seen == [1, 2]


def test_a_failing_subscriber_is_dropped_and_does_not_affect_others() -> None:
    log = EventLog()
    woken: list[str] = []

    def gone() -> None:
        woken.append("gone")
        raise RuntimeError("the event loop is closed")

    log.subscribe(gone)
    log.subscribe(lambda: woken.append("here"))
    log.publish("plan", {})
    log.publish("plan", {})
    assert woken == ["gone", "here", "here"]


def test_a_subscriber_can_take_a_lock_held_by_a_reader() -> None:
    """Subscribers are not called while the log is locked."""
    log, lock = EventLog(), threading.Lock()

    def wake() -> None:
        with lock:
            pass

    log.subscribe(wake)
    publisher = Publisher(log, Ids())
    with lock:
        publishing = _thread(lambda: [say(publisher, "x") for _ in range(200)])
        until(lambda: log.last >= 1, "the first event")
        reading = _thread(log.read)
        reading.join(20)
        assert not reading.is_alive()
    publishing.join(20)
    assert not publishing.is_alive()


def test_numbering_continues_after_an_earlier_run() -> None:
    log = EventLog()
    log.continue_after(41)
    assert log.publish("plan", {}).number == 42
    log.continue_after(7)
    assert log.publish("plan", {}).number == 43
