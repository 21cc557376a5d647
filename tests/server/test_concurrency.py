"""Sessions that change while in use: put to sleep, unshared, deleted, answered twice."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from interpreter.frontends.server import questions
from interpreter.frontends.server.sessions import LiveSession, SessionKey
from interpreter.session import PlanStep
from model_replies import Reply, Stall, text, tool_call
from running_server import Serving, ends_turn, serving, texts
from waiting import in_thread, until

WRITE = tool_call("python", "open('notes.txt', 'w').write('two')")


def live_session(served: Serving, session: str) -> LiveSession:
    found = served.hub.find(SessionKey("local", session))
    assert found is not None
    return found


def plan(served: Serving, session: str, step: str) -> None:
    """Publish an event."""
    interpreter = live_session(served, session).interpreter
    interpreter.session.plan([PlanStep(step)], interpreter.user)


def test_unsharing_a_session_disconnects_its_readers(home: Path) -> None:
    with serving() as served:
        session, token = served.session(), served.users.add("vera:viewer")
        path = f"/api/sessions/{session}"
        served.http.put(f"{path}/share", json={"users": ["vera"]})
        plan(served, session, "before")
        address = f"{served.url.replace('http', 'ws', 1)}{path}/events"
        viewer, accept = served.client(token), {"Accept": "text/event-stream"}
        with (
            connect(address, additional_headers={"Authorization": f"Bearer {token}"}, proxy=None) as reader,
            viewer.stream("GET", f"{path}/events", headers=accept) as stream,
        ):
            assert "before" in reader.recv(60)
            served.http.put(f"{path}/share", json={"users": []})
            plan(served, session, "after")
            with pytest.raises(ConnectionClosed, match="4404"):
                assert "after" not in reader.recv(60)
            with pytest.raises(httpx.TransportError):
                assert "after" not in "".join(stream.iter_text())


def test_a_session_continues_when_the_request_waiting_for_its_block_is_cancelled(home: Path) -> None:
    """As when the server closes, which cancels the requests that wait."""
    with serving() as served:
        session, begun, go_on = served.session(), threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            go_on.wait(10)

        async def cancelled() -> None:
            working, live = served.application.server.working, live_session(served, session)
            request = asyncio.ensure_future(working(live.do, "A block", work))
            while not begun.is_set():
                await asyncio.sleep(0)
            request.cancel()

        asyncio.run(cancelled())
        assert live_session(served, session).running == "A block"
        go_on.set()
        until(lambda: not live_session(served, session).running, "the end of the block")
        assert served.run(session, "print('next')") == "next\n"


def test_a_session_sleeps_and_wakes_even_if_saving_variables_fails(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as served:
        session, failed = served.session(), list[BaseException]()
        monkeypatch.setattr(served.hub, "failed", failed.append)
        live = live_session(served, session)

        def fail(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        live.interpreter.save_variables_now = fail  # type: ignore[method-assign]
        assert served.hub.retire(live)
        assert [str(each) for each in failed] == ["[Errno 28] No space left on device"]
        assert served.run(session, "print('awake')") == "awake\n"
        live_session(served, session).interpreter.save_variables_now = fail  # type: ignore[method-assign]
        assert served.http.delete(f"/api/sessions/{session}").status_code == 204
        assert served.http.get(f"/api/sessions/{session}").status_code == 404 and served.hub.ids("local") == []


def test_a_session_that_failed_to_open_can_be_opened_later(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from interpreter.app import conversations

    with serving() as served:
        session = served.session()
        assert served.hub.retire(live_session(served, session))
        with monkeypatch.context() as patch:
            patch.setattr(served.hub, "failed", lambda error: None)
            patch.setattr(conversations, "restore_variables", lambda interpreter: 1 / 0)
            assert served.http.get(f"/api/sessions/{session}/messages").status_code == 500
        assert served.run(session, "print('opened')") == "opened\n"


def test_a_session_with_requests_does_not_sleep(home: Path) -> None:
    with serving(server_idle_minutes=0.02, server_rate=1_000_000) as served:
        session, end = served.session(), time.monotonic() + 3.0
        live = live_session(served, session)
        while time.monotonic() < end:  # no turn and no block, but a steady stream of requests
            assert served.http.get(f"/api/sessions/{session}/files").status_code == 200
            assert not live.closed
        until(lambda: served.hub.find(SessionKey("local", session)) is None, "sleep")


def test_a_late_answer_does_not_save_its_rule(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(WRITE, text("Then not.")) as served:
        session = served.session()
        served.say(session, "Go.")
        question = served.question(session)
        path = f"/api/sessions/{session}/questions/{question['id']}"
        rule = served.http.get(f"{path}/rule").json()
        checking, refused = threading.Event(), threading.Event()
        check = questions._check_digest

        def slow(*args: Any) -> None:
            checking.set()
            assert refused.wait(60)
            check(*args)

        monkeypatch.setattr(questions, "_check_digest", slow)
        yes = {"choice": "approve", "digest": question["digest"], "rule": rule["digest"]}
        live, user = live_session(served, session), served.users.find("local")
        thread, found = in_thread(questions.answer_to, live, question["id"], yes, user)
        assert checking.wait(60)
        assert served.http.post(path, json={"choice": "refuse"}).status_code == 200
        refused.set()
        thread.join(60)
        assert getattr(found[0], "status", None) in (404, 409)
        saved = [each.read_text() for each in home.rglob("policy*.y*ml")]
        assert not any("decision: allow" in each for each in saved)


def test_a_second_dry_run_discards_the_first(home: Path) -> None:
    with serving(WRITE, text("Done.")) as served:
        session = served.session()
        served.say(session, "Go.")
        question = served.question(session)
        path, body = f"/api/sessions/{session}/questions/{question['id']}/preview", {"digest": question["digest"]}
        assert served.http.post(path, json=body).status_code == 200
        pending = live_session(served, session).interpreter.session.questions.open[0]
        [first] = pending.dry_runs
        assert first.can_apply and served.http.post(path, json=body).status_code == 200
        [second] = pending.dry_runs
        assert second is not first and not first.can_apply


def test_of_two_messages_sent_at_once_one_is_refused_and_none_is_lost(home: Path) -> None:
    gates = [threading.Event() for _ in range(10)]
    with serving(*[Reply((Stall(gate), *text("Yes.").deltas)) for gate in gates]) as served:
        session, ready = served.session(), threading.Barrier(2)
        path, clients = f"/api/sessions/{session}/messages", [served.client(served.users.token) for _ in range(2)]

        def send(client: httpx.Client, content: str) -> httpx.Response:
            ready.wait(60)
            return client.post(path, json={"content": content})

        accepted = []
        for number, gate in enumerate(gates):
            threads = [in_thread(send, client, f"{number} {at}") for at, client in enumerate(clients)]
            for thread, _ in threads:
                thread.join(60)
            first, second = sorted([answers[0] for _, answers in threads], key=lambda answer: answer.status_code)
            busy = {"type": "busy", "message": "A turn is running. Wait for it, or cancel it."}
            assert (first.status_code, second.status_code, second.json()["error"]) == (202, 409, busy)
            accepted.append(json.loads(first.request.content)["content"])
            gate.set()
            until(lambda: not live_session(served, session).running, "the end of the turn")
        messages = live_session(served, session).interpreter.messages
        assert [each["content"] for each in messages if each["role"] == "user"] == accepted
        assert len([each for each in served.events(session) if ends_turn(each)]) == len(accepted) == 10


def test_a_client_cancels_a_block_of_its_own(home: Path) -> None:
    with serving() as served:
        session = served.session()
        path = f"/api/sessions/{session}"
        endless = {"language": "python", "code": "print('on'); import time; time.sleep(99)"}
        thread, found = in_thread(served.client(served.users.token).post, f"{path}/run", json=endless)
        until(lambda: "on" in texts(served.events(session), "console", "computer"), "the block")
        assert served.http.post(f"{path}/messages", json={"content": "Go."}).status_code == 409
        assert served.http.post(f"{path}/cancel").json() == {"cancelled": True}
        thread.join(60)
        assert "KeyboardInterrupt" in str(found[0].json()["output"])


def test_live_sessions_share_one_thread_for_housekeeping(home: Path) -> None:
    with serving(server_idle_minutes=0.02, server_rate=1_000_000) as served:
        served.session()
        before = set(threading.enumerate())
        made = [served.hub.create("local") for _ in range(50)]
        assert set(threading.enumerate()) <= before
        until(lambda: all(live.closed for live in made), "sleep")


def test_cancel_reports_whether_anything_was_running(home: Path) -> None:
    gate = threading.Event()
    slow = text("Slow.")
    with serving(type(slow)((Stall(gate), *slow.deltas))) as served:
        session = served.session()
        path = f"/api/sessions/{session}"
        assert served.http.post(f"{path}/cancel").json() == {"cancelled": False}
        served.http.post(f"{path}/messages", json={"content": "Go."})
        assert served.model.stalled.wait(60)
        assert served.http.post(f"{path}/cancel").json() == {"cancelled": True}
        gate.set()


def test_a_messages_position_is_after_the_end_of_the_previous_turn(home: Path) -> None:
    with serving(*[text("Yes.")] * 20) as served:
        session = served.session()
        path = f"/api/sessions/{session}"
        for _ in range(20):
            answer = served.http.post(f"{path}/messages", json={"content": "Go."})
            while answer.status_code == 409:
                answer = served.http.post(f"{path}/messages", json={"content": "Go."})
            first = served.events(session, answer.json()["position"], wait=20)[0]
            assert (first["action"], first["data"]["state"]) == (answer.json()["turn"], "begun")


def test_reading_the_timeline_adds_no_checkpoint_to_a_starting_turn(home: Path) -> None:
    with serving(text("Yes.")) as served:
        session, release = served.session(), threading.Event()
        live, path = live_session(served, session), f"/api/sessions/{session}/timeline"

        def begin() -> None:  # the message exists, the checkpoint doesn't yet
            live.interpreter.messages.append({"role": "user", "type": "message", "content": "Go."})
            release.wait(60)

        thread, _ = in_thread(live.do, "A test", begin)
        until(lambda: live.interpreter.messages, "the message")
        assert served.http.get(path).json()["points"] == []
        release.set()
        thread.join(60)
        assert [point["label"] for point in served.http.get(path).json()["points"]] == ["Go."]


def test_an_aborted_upload_leaves_no_file_and_reports_no_failure(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    with serving() as served:
        session, failed = served.session(), list[BaseException]()
        monkeypatch.setattr(served.hub, "failed", failed.append)
        head = (
            f"PUT /api/sessions/{session}/files/big.bin HTTP/1.1\r\nHost: 127.0.0.1:{served.application.port}\r\n"
            f"Authorization: Bearer {served.users.token}\r\nContent-Type: application/octet-stream\r\n"
            "Content-Length: 1000000\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", served.application.port)) as client:
            client.sendall(head.encode() + b"x" * 1000)
            until(lambda: list(Path().glob(".upload*")), "the beginning of the upload")
        until(lambda: not list(Path().glob(".upload*")), "its end")
        assert served.http.get("/api/me").status_code == 200
        assert failed == [] and not Path("big.bin").exists()


def test_nan_is_never_sent_as_json(home: Path) -> None:
    code = (
        "from IPython.display import display\n"
        "display({'application/json': {'x': float('nan')}, 'text/plain': 'shown'}, raw=True)\nnothing = float('nan')"
    )

    def strict(text: str) -> Any:
        return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))

    with serving() as served:
        session = served.session()
        served.run(session, code)
        for path in ("events", "variables", "variables/python/nothing", "messages"):
            answer = served.http.get(f"/api/sessions/{session}/{path}")
            assert answer.status_code == 200, path
            strict(answer.text)
