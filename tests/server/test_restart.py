"""The server as a program: started from the command line, killed, and started again."""

from __future__ import annotations

import json
import os
import re
import signal
import socket as sockets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

import interpreter
from interpreter.config.homes import our_folder
from model_replies import Stall, text, tool_call
from model_server import ModelServer
from ports import free_ports
from running_server import Serving, texts
from sampling import some
from waiting import LIMIT, in_thread, until


@contextmanager
def program(model: ModelServer, port: int, *flags: str) -> Iterator[subprocess.Popen[str]]:
    arguments = ["--serve", "--port", str(port), "--model", "gpt-4o", "--api_base", model.base_url, "--api_key", "key"]
    command = [sys.executable, "-m", "interpreter", *arguments, *flags]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "For scripts" in line:
                break
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=LIMIT)


def client(port: int) -> httpx.Client:
    token = (our_folder("data") / "server" / "token").read_text()
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(
        base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=LIMIT, trust_env=False, verify=False
    )


def events(http: httpx.Client, session: str, after: str = "0") -> list[dict[str, Any]]:
    return list(http.get(f"/api/sessions/{session}/events", params={"after": after, "limit": 5000}).json()["events"])


def test_after_a_kill_clients_continue_from_a_consistent_log(home: Path, no_strays: None) -> None:
    half = text("This is the half ").then(text("that never came."))
    stalled = type(half)((half.deltas[0], Stall(None), *half.deltas[1:]))
    with ModelServer(
        [tool_call("python", "kept = 41\nprint('printed')"), text("First."), stalled, text("Third.")]
    ) as model:
        [port] = free_ports(1)
        with program(model, port, "-y") as first, client(port) as http:
            session = http.post("/api/sessions", json={}).json()["id"]
            http.post(f"/api/sessions/{session}/messages", json={"content": "One.", "wait": True})
            until(lambda: list(our_folder().rglob("Python.*")), "the saved variables")
            http.post(f"/api/sessions/{session}/messages", json={"content": "Two."})
            until(lambda: "half" in texts(events(http, session)), "half an answer")
            before = events(http, session)
            first.send_signal(signal.SIGKILL)
            first.wait(LIMIT)
        with program(model, port, "-y"), client(port) as http:
            assert texts(events(http, session)).startswith("First."), "a stored session can be read"
            position = before[-1]["position"]
            answer = http.post(f"/api/sessions/{session}/messages", json={"content": "Three.", "wait": True}).json()
            assert answer["messages"][-1]["content"] == "Third."
            later = events(http, session, position)
            assert texts(later) == "Third." and texts(later, role="user") == "Three."
            everything = events(http, session)
            assert texts(everything).startswith("First.") and texts(everything).endswith("Third.")
            numbers = [each["number"] for each in everything]
            assert numbers == sorted(numbers) and min(each["number"] for each in later) >= before[-1]["number"]
            assert "printed" in texts(everything, "console", "computer")
            lost = [each for each in everything if each["data"].get("outcome") == "lost"]
            assert all(each["kind"] == "action" for each in lost)
            run = {"language": "python", "code": "print(kept + 1)"}
            assert http.post(f"/api/sessions/{session}/run", json=run).json()["output"][0]["content"] == "42\n"


def test_a_python_client_survives_a_restart(home: Path, no_strays: None) -> None:
    with ModelServer([text("Hello."), text("Again.")]) as model:
        [port] = free_ports(1)
        with program(model, port) as first:
            remote = interpreter.connect(f"http://127.0.0.1:{port}")
            assert remote.chat("Hi.", display=False)[0]["content"] == "Hello."
            seen: list[Any] = []

            def follow() -> None:
                for event in remote.events():
                    seen.append(event)
                    if event["data"].get("content") == "Again.":
                        return

            thread, _ = in_thread(follow)
            until(lambda: texts(seen) == "Hello.", "the first answer")
            first.send_signal(signal.SIGKILL)
            first.wait(LIMIT)
        with program(model, port):
            with interpreter.connect(f"http://127.0.0.1:{port}", session=remote.id) as other:
                other.chat("And?", display=False)
            thread.join(LIMIT)
            assert texts(seen) == "Hello.Again."
        remote.close()


def test_the_command_line_creates_tokens_and_shuts_down_cleanly(home: Path, no_strays: None) -> None:
    with ModelServer([]) as model:
        [port] = free_ports(1)
        with program(model, port) as process, client(port) as http:
            made = subprocess.run(
                [sys.executable, "-m", "interpreter", "--server_token", "anna:viewer"], capture_output=True, text=True
            )
            token = made.stdout.strip()
            answer = http.get("/api/me", headers={"Authorization": f"Bearer {token}"})
            assert answer.json()["role"] == "viewer"
            session = http.post("/api/sessions", json={}).json()["id"]
            http.post(f"/api/sessions/{session}/run", json={"language": "python", "code": "a = 1"})
            process.send_signal(signal.SIGTERM)
            _, rest = process.communicate(timeout=LIMIT)
            assert "Traceback" not in rest
    assert list(our_folder().rglob("Python.*")), "the variables were saved"
    wrong = subprocess.run(
        [sys.executable, "-m", "interpreter", "--server_token", "../x"], capture_output=True, text=True
    )
    assert wrong.returncode == 2 and "lower-case" in wrong.stderr


FRAMES = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=200),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["role", "type", "content", "start", "end", "question", "choice", "ack", "auth"]) | st.text(max_size=5), inner, max_size=6),
        max_leaves=20,
    ).map(json.dumps),
    st.sampled_from(["[" * 100_000, '{"type": "message"}', '{"type": "answer", "question": {}, "choice": []}', "null", ""]),
)  # fmt: skip


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(frames=st.lists(FRAMES, min_size=1, max_size=5))
def fuzz(served: Serving, address: str, frames: list[Any]) -> None:
    headers = {"Authorization": f"Bearer {served.users.token}"}
    try:
        with connect(address, additional_headers=headers, proxy=None) as socket:
            for frame in frames:
                socket.send(frame)
    except ConnectionClosed:
        pass
    assert served.http.get("/api/me").status_code == 200


@pytest.mark.parametrize("path", some(1, ["/", "/api/sessions/{}/events"]))
def test_fuzzed_frames_do_not_crash_the_server(shared: Serving, path: str) -> None:
    fuzz(shared, shared.url.replace("http", "ws", 1) + path.format(shared.session()))
    for live in list(shared.hub._live.values()):
        live.interpreter.cancel()


def test_malformed_http_does_not_crash_the_server(shared: Serving) -> None:
    for data in (b"\x00" * 100, b"GET", b"GET / HTTP/1.1\r\nHost:\r\n\r\n", b"GET / HTTP/9\r\n\r\n", os.urandom(2000)):
        with sockets.create_connection(("127.0.0.1", shared.application.port), timeout=LIMIT) as raw:
            raw.sendall(data)
    assert shared.http.get("/api/me").status_code == 200
    assert shared.http.get("/api/sessions", params={"limit": "[" * 20_000}).status_code == 400
    assert re.fullmatch(r"[0-9a-f]{8}", shared.session())
