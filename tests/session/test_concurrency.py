"""Many concurrent callers on one session: nothing hangs, nothing is lost or doubled, and events have one order."""

from __future__ import annotations

import gc
import random
import shutil
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from interpreter.errors import BusyError, InterpreterError
from interpreter.questions import Confirm
from interpreter.session import (
    ANSWER,
    APPROVE,
    Action,
    ActionContext,
    Actor,
    Answer,
    Block,
    Event,
    Performance,
    Question,
)
from model_server import text, tool_call
from waiting import in_thread, until

__all__ = ["chatting"]
pytestmark = pytest.mark.usefixtures("no_strays")

LANGUAGES = ["python", "shell", *(["javascript"] if shutil.which("node") else [])]
SAY = {"python": "print('{0}', flush=True)", "shell": "echo {0}", "javascript": "console.log('{0}')"}
SLEEP = {
    "python": "import time; time.sleep(0.05)",
    "shell": "sleep 0.05",
    "javascript": "await new Promise(done => setTimeout(done, 50))",
}
ENDLESS = {"python": "while True: pass", "shell": "sleep 60", "javascript": "while (true) {}"}


@pytest.fixture(autouse=True)
def frequent_thread_switches() -> Iterator[None]:
    """Switch threads a thousand times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


LIMIT = 60  # seconds: only a hang takes this long


def join_all(threads: list[tuple[threading.Thread, list[Any]]], interpreter: OpenInterpreter) -> list[Any]:
    """The result of each thread; if one hangs, fail with what the session was doing."""
    end = time.monotonic() + LIMIT
    for thread, _ in threads:
        thread.join(max(0.1, end - time.monotonic()))
    hanging = [thread.name for thread, _ in threads if thread.is_alive()]
    session = interpreter.session
    doing = [action.describe() for action in session.running]
    assert not hanging, f"{hanging} hang; running: {doing}, lane: {session.lane.holder}, {session.questions.open}"
    return [found[0] for _, found in threads]


class Caller:
    """A thread's random actions: blocks, undo, cancels, questions answered late or never, abandoned streams."""

    def __init__(self, interpreter: OpenInterpreter, seed: int, count: int) -> None:
        self.interpreter, self.random, self.count = interpreter, random.Random(seed), count
        self.name = f"t{seed}"
        self.said: dict[str, str] = {}  # by the id of the action

    def run(self) -> None:
        for number in range(self.count):
            step = self.random.choice([self.block] * 5 + self.others)
            try:
                step(f"{self.name}-{number}")
            except (BusyError, InterpreterError):
                pass  # nothing to undo, or only others' actions to undo

    @property
    def others(self) -> list[Callable[[str], None]]:
        late, left = [self.asks, self.unanswered], [self.left, self.dropped]
        return [self.cancelled, self.undo, self.shared, self.reader, *late, *left]

    def perform(self, language: str, code: str, said: str = "") -> Performance:
        block = Block(language, code)
        self.said[block.id] = said
        return self.interpreter.session.perform(block, self.interpreter.user)

    def block(self, word: str) -> None:
        language = self.random.choice(LANGUAGES)
        both = "\n".join([SAY[language].format(word), SLEEP[language], SAY[language].format("end-" + word)])
        assert list(self.perform(language, both, f"{word}\nend-{word}\n"))[-1].data["outcome"] == "done"

    def undo(self, word: str) -> None:
        self.interpreter.undo(blocks=True, parts=["files"])

    def cancelled(self, word: str) -> None:
        language = self.random.choice(LANGUAGES)
        code = SAY[language].format(word) + "\n" + ENDLESS[language]
        performance = self.perform(language, code)
        stopping = threading.Timer(self.random.random() * 0.3, self.cancel, [performance.action])
        stopping.start()
        assert list(performance)[-1].data["outcome"] in ("interrupted", "cancelled")
        stopping.join()

    def cancel(self, action: Action) -> None:
        self.interpreter.session.cancel(action)

    def asks(self, word: str) -> None:
        code = f"print('{word}', input('late {word}'))"
        list(self.perform("python", code, f"{word} answer\n"))

    def unanswered(self, word: str) -> None:
        list(self.perform("python", f"try: input('never {word}')\nexcept EOFError: print('{word}')", f"{word}\n"))

    def dropped(self, word: str) -> None:
        """The iterator is never closed: the garbage collector finds it."""
        performance = self.perform("python", SAY["python"].format(word) + "\n" + ENDLESS["python"])
        next(event for event in performance if event.kind == "console")
        cycle: list[Any] = [performance]
        cycle.append(cycle)
        del performance, cycle
        gc.collect()

    def shared(self, word: str) -> None:
        """Two threads read one action."""
        performance = self.perform("shell", f"echo {word}; sleep 0.02; echo end-{word}", f"{word}\nend-{word}\n")
        helper, found = in_thread(list, performance)
        mine = list(performance)
        helper.join(LIMIT)
        assert not helper.is_alive() and isinstance(found[0], list)
        ended = [event for event in [*mine, *found[0]] if event.kind == "action" and event.data["state"] == "ended"]
        assert len(ended) == 1

    def reader(self, word: str) -> None:
        """A reader of events acts too."""
        for event in self.interpreter.session.events(self.interpreter.session.log.last - 3):
            assert event.number
            self.block(word)
            return

    def left(self, word: str) -> None:
        """The consumer stops reading and does other work."""
        language = self.random.choice(LANGUAGES)
        chunks = self.interpreter.computer.run(language, SAY[language].format(word), stream=True)
        next(chunks)
        chunks.close()


def answering(interpreter: OpenInterpreter) -> None:
    """A front end that follows the events and answers the `late` questions after a delay."""
    for event in interpreter.session.events():
        if event.kind == "input_request" and str(event.data["content"]).startswith("late"):
            threading.Timer(0.02, answer, [interpreter, event.data["question"]]).start()


def answer(interpreter: OpenInterpreter, question: str) -> None:
    interpreter.session.answer(question, Answer(ANSWER, "answer", by="front end"))


def check(events: list[Event], said: dict[str, str]) -> None:
    """Check for one order without gaps, each action begun and ended once without overlap, each with its own output."""
    numbers = list(dict.fromkeys(event.number for event in events))
    assert numbers == list(range(1, len(numbers) + 1))
    positions = [(event.position, bool(event.data.get("start"))) for event in events]
    assert len(set(positions)) == len(positions), "a reader got something twice"
    states: dict[str, list[str]] = defaultdict(list)
    children: set[str] = set()
    running = ""
    for event in events:
        if event.kind != "action":
            continue
        states[event.ids.action].append(event.data["state"])
        if event.data["kind"] == "turn":
            continue  # it holds no lane: its blocks do
        if "parent" in event.data and event.data["parent"] != event.ids.turn:
            children.add(event.ids.action)
        if event.ids.action in children:
            continue
        if event.data["state"] == "running":
            assert not running, f"{event.ids.action} runs while {running} does"
            running = event.ids.action
        elif event.data["state"] == "ended" and event.ids.action == running:
            running = ""
    assert {tuple(each) for each in states.values()} <= {("begun", "ended"), ("begun", "running", "ended")}
    printed: dict[str, str] = defaultdict(str)
    for event in events:
        if event.kind == "console" and event.data.get("format") == "output":
            printed[event.ids.action] += event.data["content"]
    for action, words in said.items():
        if words:
            assert printed[action].replace("\r", "").startswith(words) or words in printed[action], (action, words)
    asked = Counter(event.data["question"] for event in events if "question" in event.data and event.kind != "answer")
    answered = Counter(event.data["question"] for event in events if event.kind == "answer")
    assert asked == answered and set(asked.values()) <= {1}


@pytest.mark.parametrize("count", [2, pytest.param(25, marks=pytest.mark.full)])
def test_eight_threads_share_one_session(tmp_path: Path, count: int) -> None:
    interpreter = OpenInterpreter(workspace=str(tmp_path), question_timeout=0.3)
    session = interpreter.session
    front_end = in_thread(answering, interpreter)
    seen: list[Event] = []
    reader = in_thread(lambda: seen.extend(session.events()))
    callers = [Caller(interpreter, seed, count) for seed in range(8)]
    with session.questions.answerable(["text"]):
        results = join_all([in_thread(caller.run) for caller in callers], interpreter)
    interpreter.computer.terminate()
    session.close()
    join_all([front_end, reader], interpreter)
    assert [each for each in results if each is not None] == []
    assert not session.running and session.lane.holder is None and session.lane.waiting == 0
    said = {action: words for caller in callers for action, words in caller.said.items()}
    check(seen, said)
    begun = [event for event in seen if event.kind == "action" and event.data["state"] == "begun"]
    assert len(begun) >= 8 * count


def test_several_threads_can_start_a_session_at_once(tmp_path: Path) -> None:
    interpreter = OpenInterpreter(workspace=str(tmp_path))
    barrier = threading.Barrier(8)

    def first(number: int) -> Any:
        barrier.wait(LIMIT)
        return interpreter.computer.run("python", f"count = globals().get('count', 0) + 1\nprint({number}, count)")

    results = join_all([in_thread(first, number) for number in range(8)], interpreter)
    interpreter.computer.terminate()
    counts = sorted(int(result[0]["content"].split()[1]) for result in results)
    assert counts == list(range(1, 9)), "the threads did not share one runtime"


def test_concurrent_chats_and_blocks_keep_messages_and_journals_intact(chatting: Chatting, tmp_path: Path) -> None:
    """Two interpreters chat on one computer while others run blocks; each journal replays to its own conversation."""
    settings = {"workspace": str(tmp_path), "auto_run": True}
    rounds = 5
    mine = [reply for n in range(rounds) for reply in (tool_call("python", f"print('mine {n}')"), text(f"Done {n}."))]
    theirs = [reply for n in range(rounds) for reply in (tool_call("shell", f"echo theirs {n}"), text(f"So {n}."))]
    owner, _ = chatting(*mine, **settings)
    other, server = chatting(*theirs, **settings)
    guest = OpenInterpreter(computer=owner.computer, llm=None, **settings)
    guest.llm.api_base, guest.llm.api_key, guest.llm.max_retries = server.base_url, "key", 0

    def talk(interpreter: OpenInterpreter) -> None:
        for number in range(rounds):
            interpreter.chat(f"go {number}", display=False)

    def work() -> None:
        for number in range(10):
            owner.computer.run("shell", f"echo direct {number}")

    results = join_all([in_thread(talk, owner), in_thread(talk, guest), in_thread(work), in_thread(work)], owner)
    assert results == [None] * 4
    for interpreter, words in ((owner, "mine"), (guest, "theirs")):
        printed = [message["content"] for message in interpreter.messages if message["type"] == "console"]
        assert printed == [f"{words} {number}\n" for number in range(rounds)]
        read = interpreter.journal.read()
        assert read is not None and read.messages == interpreter.messages
    assert other.messages == []
    check(owner.session.log.read(), {})


def test_reads_are_answered_or_refused_while_a_block_runs(tmp_path: Path) -> None:
    interpreter = OpenInterpreter(workspace=str(tmp_path))
    computer = interpreter.computer
    computer.run("python", "x = 1")
    computer.run("shell", "y=2")
    block, _ = in_thread(computer.run, "python", ENDLESS["python"])
    until(lambda: interpreter.session.lane.holder is not None and computer.runtimes.active is not None, "the block")
    reads: list[Callable[[], Any]] = [
        computer.variables,
        lambda: computer.variables("python"),
        lambda: computer.variables("shell"),
        lambda: computer.look("python", "x"),
        lambda: computer.complete("python", "prin"),
        lambda: computer.runtimes.runtime("python").points(),
        computer.mark,
        computer.runtimes.describe_languages,
        lambda: interpreter.checkpoints,
        lambda: interpreter.pending,
        interpreter.session.log.read,
    ]
    results = join_all([in_thread(read) for read in reads], interpreter)
    strange = [each for each in results if isinstance(each, BaseException) and not isinstance(each, BusyError)]
    assert strange == []
    interpreter.cancel()
    block.join(LIMIT)
    assert not block.is_alive()
    assert "python" in {name.lower() for name in computer.variables()}
    computer.terminate()


def test_cancelling_from_many_threads_ends_each_action_once(tmp_path: Path) -> None:
    interpreter = OpenInterpreter(workspace=str(tmp_path))
    session = interpreter.session
    blocks = [Block("python", ENDLESS["python"]) for _ in range(6)]
    running = [in_thread(session.perform(block, interpreter.user).result) for block in blocks]
    until(lambda: len(session.running) == 6, "the actions")
    cancelling = [in_thread(session.cancel, block) for block in blocks * 4]
    join_all(cancelling + running, interpreter)
    interpreter.computer.terminate()
    check(session.log.read(), {})
    outcomes = [e.data["outcome"] for e in session.log.read() if e.kind == "action" and e.data["state"] == "ended"]
    assert len(outcomes) == 6 and set(outcomes) <= {"interrupted", "cancelled"}


def test_cancelling_a_block_does_not_stop_the_next_one(tmp_path: Path) -> None:
    """A stop that arrives as a block ends must not reach the next block in the same runtime."""
    interpreter = OpenInterpreter(workspace=str(tmp_path))
    session = interpreter.session
    interpreter.computer.run("python", "import time")
    for number in range(30):
        first = Block("python", "time.sleep(0.01)")
        second = Block("python", "time.sleep(0.02)\nprint('whole')")
        threads = [in_thread(session.perform(first, interpreter.user).result)]
        until(lambda first=first: first.runtime is not None, "the first block")  # type: ignore[misc]
        threads.append(in_thread(session.perform(second, interpreter.user).result))
        time.sleep(0.001 * (number % 15))
        threads.append(in_thread(session.cancel, first))
        join_all(threads, interpreter)
        assert second.outcome == "done", f"round {number}"
    interpreter.computer.terminate()


def test_actors_that_join_at_once_get_distinct_ids() -> None:
    interpreter = OpenInterpreter()
    joined: list[tuple[threading.Thread, list[Any]]] = []
    for _ in range(8):
        joined.append(in_thread(interpreter.session.add_actor, "client"))
    actors: list[Actor] = join_all(joined, interpreter)
    assert len({actor.id for actor in actors}) == 8


def test_questions_of_several_actions_are_answered_separately(tmp_path: Path) -> None:
    """Each answer goes to the block that asked, though all ask before any of them holds the lane."""
    interpreter = OpenInterpreter(workspace=str(tmp_path))
    session = interpreter.session
    asked = []

    class Asks(Block):
        def judge(self, context: ActionContext) -> Iterator[Any]:
            question = Question(Confirm("Run it?", details=self))
            yield question
            self.refused = not question.approved

    blocks = [Asks("python", f"print({number})") for number in range(6)]
    with session.questions.answerable(["confirm"]):
        threads = [in_thread(session.perform(block, interpreter.user).result) for block in blocks]
        until(lambda: len(session.questions.open) == 6, "the questions")
        for question in session.questions.open:
            number = blocks.index(question.subject.details)
            asked.append(session.answer(question.id, APPROVE if number % 2 else "refuse"))
        join_all(threads, interpreter)
    interpreter.computer.terminate()
    assert asked == [True] * 6
    assert [block.outcome for block in blocks] == ["refused", "done"] * 3
    check(session.log.read(), {block.id: f"{number}\n" for number, block in enumerate(blocks) if number % 2})


def test_checkpoints_made_by_several_threads_get_distinct_ids(chatting: Chatting, tmp_path: Path) -> None:
    """A turn begins without the lane, while other blocks run."""
    owner, _ = chatting(workspace=str(tmp_path))
    guests = [OpenInterpreter(computer=owner.computer, workspace=str(tmp_path)) for _ in range(4)]
    timeline = owner.timeline

    def begin(guest: OpenInterpreter) -> None:
        for number in range(150):
            guest.messages.append({"role": "user", "type": "message", "content": f"request {number}"})
            timeline.begin_turn(guest.agent)

    def work() -> None:
        for number in range(60):
            owner.computer.run("echo", f"{number}")

    join_all([*[in_thread(begin, guest) for guest in guests], in_thread(work), in_thread(work)], owner)
    ids = [point.id for point in timeline.checkpoints]
    assert ids == list(range(1, 4 * 150 + 2 * 60 + 1))
    assert set(timeline.places.values()) == {len(ids)}
