"""The protocol of 0.4.3: its clients work unchanged, and its security holes are closed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from interpreter import AsyncInterpreter
from interpreter.errors import UsageError
from model_replies import error, text, tool_call
from model_server import ModelServer
from running_server import Serving, serving
from waiting import LIMIT, until

COMPLETE = {"role": "server", "type": "status", "content": "complete"}
MAKE = tool_call("python", "open('made.txt', 'w').write('x')\nprint('made')")


@contextmanager
def client(served: Serving) -> Iterator[ClientConnection]:
    """As 0.4.3's clients do it: no header, the key in the first frame."""
    with connect(served.url.replace("http", "ws", 1) + "/", proxy=None) as socket:
        socket.send(json.dumps({"auth": "wrong"}))
        assert json.loads(socket.recv(LIMIT)) == {"auth": False}
        socket.send(json.dumps({"auth": served.users.token}))
        assert json.loads(socket.recv(LIMIT)) == {"auth": True}
        yield socket


def say(socket: ClientConnection, content: str, kind: str = "message") -> None:
    socket.send(json.dumps({"role": "user", "type": kind, "start": True}))
    socket.send(json.dumps({"role": "user", "type": kind, "content": content}))
    socket.send(json.dumps({"role": "user", "type": kind, "end": True}))


def until_complete(socket: ClientConnection, acknowledge: bool = False) -> list[dict[str, Any]]:
    frames: list[dict[str, Any]] = []
    while not frames or frames[-1].get("content") != "complete":
        frames.append(json.loads(socket.recv(LIMIT)))
        if acknowledge:
            socket.send(json.dumps({"ack": frames[-1]["id"]}))
    return frames


def joined(frames: list[dict[str, Any]], kind: str = "message") -> str:
    return "".join(str(each["content"]) for each in frames if each["type"] == kind and "content" in each)


def test_a_message_is_answered_in_chunks(home: Path) -> None:
    with serving(text("Hello there.", 5)) as served, client(served) as socket:
        say(socket, "Hi.")
        frames = until_complete(socket)
        assert frames[0] == {"role": "assistant", "type": "message", "start": True}
        assert frames[-2:] == [{"role": "assistant", "type": "message", "end": True}, COMPLETE]
        assert joined(frames) == "Hello there."


def test_a_message_sent_in_pieces_has_a_size_limit(home: Path) -> None:
    with serving(text("Yes."), server_max_body=2000) as served, client(served) as socket:
        socket.send(json.dumps({"role": "user", "type": "message", "start": True}))
        for _ in range(3):
            socket.send(json.dumps({"role": "user", "type": "message", "content": "x" * 900}))
        assert "larger than 2,000" in until_complete(socket)[0]["content"]
        say(socket, "Short.")
        assert joined(until_complete(socket)) == "Yes."


def test_go_runs_the_block_that_was_shown_and_only_once(home: Path) -> None:
    with serving(MAKE, text("Done."), MAKE) as served, client(served) as socket:
        say(socket, "go", "command")
        assert "waits for approval" in until_complete(socket)[0]["content"]
        say(socket, "Make it.")
        frames = until_complete(socket)
        assert not any(each["type"] == "confirmation" for each in frames) and not Path("made.txt").exists()
        with client(served) as other:  # it was shown nothing
            say_go = {"role": "user", "type": "command", "content": "go", "end": True}
            other.send(json.dumps(say_go))
            assert "waits for approval" in until_complete(other)[-2]["content"]
        assert not Path("made.txt").exists()
        socket.send(json.dumps({"role": "user", "type": "command", "content": "go", "end": True}))
        frames = until_complete(socket)
        assert Path("made.txt").exists() and joined(frames) == "Done." and "made" in joined(frames, "console")
        Path("made.txt").unlink()
        say(socket, "Again.")
        until_complete(socket)
        say(socket, "Never mind.")  # a new message ends the turn that waits
        until_complete(socket)
        assert not Path("made.txt").exists()


def test_stop_interrupts_the_turn(home: Path) -> None:
    endless = tool_call("python", "import time\nprint('on', flush=True)\ntime.sleep(600)")
    with serving(endless, text("Fine."), auto_run=True) as served, client(served) as socket:
        say(socket, "Sleep.")
        while "on\n" not in str(json.loads(socket.recv(LIMIT)).get("content")):
            pass
        say(socket, "stop", "command")
        until_complete(socket)
        say(socket, "And now?")
        assert joined(until_complete(socket)) == "Fine."


def test_unacknowledged_frames_are_resent_on_the_next_connection(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERPRETER_REQUIRE_ACKNOWLEDGE", "True")
    with serving(text("One two three.", 4)) as served:
        with client(served) as socket:
            say(socket, "Count.")
            first = json.loads(socket.recv(LIMIT))
            socket.send(json.dumps({"ack": first["id"]}))
            second = json.loads(socket.recv(LIMIT))
            again = json.loads(socket.recv(LIMIT))
            assert again == second, "it is sent again until it is acknowledged"
        until(lambda: not any(live.running for live in served.hub._live.values()), "the end of the turn")
        with client(served) as socket:
            assert joined(until_complete(socket, acknowledge=True)) == "One two three."


def test_only_allow_listed_settings_can_be_read_and_changed(home: Path) -> None:
    with serving() as served:
        http, key = served.client(), {"X-API-KEY": served.users.token}
        assert http.get("/heartbeat").status_code == 401
        assert http.get("/heartbeat", headers=key).json() == {"status": "alive"}
        change = {"llm": {"model": "gpt-4o-mini"}, "custom_instructions": "Be brief."}
        assert http.post("/settings", json=change, headers=key).json() == {"status": "success"}
        assert json.loads(http.get("/settings/custom_instructions", headers=key).json()) == {
            "custom_instructions": "Be brief."
        }
        assert json.loads(http.get("/settings/auto_run", headers=key).json()) == {"auto_run": False}
        for wrong in (
            {"auto_run": True}, {"mode": "auto"}, {"llm": {"api_key": "k"}}, {"llm": 1}, {"llm": {"completions": "x"}},
            {"computer": {"offline": True}}, {"sandbox": "off"}, {"safe_mode": "off"}, {"server_host": "0.0.0.0"},
        ):  # fmt: skip
            assert http.post("/settings", json=wrong, headers=key).status_code == 403, wrong
        for name in ("llm", "server_key", "nothing", "__class__", "api_key"):
            assert http.get(f"/settings/{name}", headers=key).status_code == 404


def test_an_owner_sets_the_prompt_and_the_conversation(home: Path) -> None:
    with serving(text("Blue.")) as served:
        http = served.http
        said = [{"role": "user", "type": "message", "content": "My colour is blue."}]
        change = {"system_message": "You are a parrot.", "messages": said}
        assert http.post("/settings", json=change).json() == {"status": "success"}
        assert json.loads(http.get("/settings/system_message").json()) == {"system_message": "You are a parrot."}
        assert [each["content"] for each in json.loads(http.get("/settings/messages").json())["messages"]] == [
            "My colour is blue."
        ]
        for wrong in ({"messages": "x"}, {"messages": [1]}, {"system_message": 1}):
            assert http.post("/settings", json=wrong).status_code == 400, wrong
        with client(served) as socket:
            say(socket, "Which?")
            assert joined(until_complete(socket)) == "Blue."
        request = served.model.requests[-1].body["messages"]
        assert request[0]["content"].startswith("You are a parrot.")
        assert [each["content"] for each in request[1:]] == ["My colour is blue.", "Which?"]


def test_a_viewer_sets_nothing(home: Path) -> None:
    with serving() as served:
        viewer = {"X-API-KEY": served.users.add("eve:viewer")}
        change = {"llm": {"api_base": "http://127.0.0.1:1/v1"}}
        assert served.client().post("/settings", json=change, headers=viewer).status_code == 403


def test_a_new_address_never_gets_the_old_ones_key(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    with serving(text("Old.")) as served, ModelServer([text("New."), text("Again.")]) as other:
        http = served.http

        def ask() -> str:
            with client(served) as socket:
                say(socket, "Who?")
                return joined(until_complete(socket))

        assert ask() == "Old."
        old = served.model.requests[-1].headers["authorization"]
        assert http.post("/settings", json={"llm": {"api_base": other.base_url}}).json() == {"status": "success"}
        assert ask() == "New."
        new = other.requests[-1].headers["authorization"]
        assert new == "Bearer none" and new != old
        assert http.post("/settings", json={"llm": {"api_base": other.base_url + "/", "api_key": "its-own"}}).is_success
        assert ask() == "Again."
        assert other.requests[-1].headers["authorization"] == "Bearer its-own"


def test_run_upload_and_download_stay_in_the_workspace(home: Path) -> None:
    with serving(workspace=str(home / "work")) as served:
        http = served.http
        output = http.post("/run", json={"language": "python", "code": "print(6 * 7)"}).json()["output"]
        assert output[0]["content"] == "42\n" and "role" not in output[0]
        sent = http.post("/upload", files={"file": ("a.txt", b"\x00\r\n--x")}, data={"path": "in/a.txt"})
        assert sent.json() == {"status": "success"}
        assert http.get("/download/in/a.txt").content == b"\x00\r\n--x" == (home / "work/in/a.txt").read_bytes()
        for path in ("../out.txt", "/tmp/out-of-it.txt", "in/../../out.txt"):
            assert http.post("/upload", files={"file": ("a", b"x")}, data={"path": path}).status_code == 400
        assert not (home / "out.txt").exists() and not Path("/tmp/out-of-it.txt").exists()
        assert http.get("/download/..%2F.bashrc").status_code in (400, 404)


def test_without_a_key_the_connection_is_refused(home: Path) -> None:
    with serving() as served, connect(served.url.replace("http", "ws", 1) + "/", proxy=None) as socket:
        for frame in ("{}", json.dumps({"auth": True}), json.dumps({"role": "user", "content": "x", "end": True})):
            socket.send(frame)
            assert json.loads(socket.recv(LIMIT)) == {"auth": False}
        with pytest.raises(ConnectionClosed, match="4401"):
            socket.recv(LIMIT)
        assert not served.hub._live
        with pytest.raises(Exception, match="403"):
            connect(served.url.replace("http", "ws", 1) + "/", origin="http://evil.example", proxy=None)  # type: ignore[arg-type]


def test_async_interpreter_runs_its_own_server(home: Path) -> None:
    with ModelServer([text("I am served.")]) as model:
        interpreter = AsyncInterpreter(server_port=0)
        interpreter.llm.model, interpreter.llm.api_key, interpreter.llm.api_base = "gpt-4o", "key", model.base_url
        application = interpreter.server.application  # type: ignore[attr-defined]
        thread = threading.Thread(target=interpreter.server.run, kwargs={"port": 0}, daemon=True)  # type: ignore[attr-defined]
        thread.start()
        try:
            until(lambda: application.port, "the port")
            address = f"ws://127.0.0.1:{application.port}/"
            with connect(address, additional_headers={"X-API-KEY": application.users.token}, proxy=None) as socket:
                say(socket, "Who?")
                assert joined(until_complete(socket)) == "I am served."
            assert interpreter.messages[-1]["content"] == "I am served."
            with pytest.raises(UsageError):
                _ = interpreter.server.authenticate  # type: ignore[attr-defined]
        finally:
            application.stop()
            thread.join(LIMIT)


def test_input_and_output_work_without_a_server(home: Path) -> None:
    import asyncio

    async def talk(interpreter: Any) -> list[Any]:
        await interpreter.input({"role": "user", "type": "message", "start": True})
        await interpreter.input({"role": "user", "type": "message", "content": "He"})
        await interpreter.input({"role": "user", "type": "message", "content": "llo"})
        await interpreter.input({"role": "user", "type": "message", "end": True})
        frames = [await interpreter.output()]
        while frames[-1] != COMPLETE:
            frames.append(await interpreter.output())
        return frames

    with ModelServer([text("Hi.")]) as model:
        interpreter = AsyncInterpreter()
        interpreter.llm.model, interpreter.llm.api_key, interpreter.llm.api_base = "gpt-4o", "key", model.base_url
        assert joined(asyncio.run(talk(interpreter))) == "Hi."
        assert interpreter.messages[0]["content"] == "Hello"


def test_an_error_of_a_turn_is_a_frame_before_complete(home: Path) -> None:
    refused = error(401, {"error": {"message": "Incorrect API key."}})
    with serving(refused, text("Hi.")) as served, client(served) as socket:
        say(socket, "Hello.")
        *_, failed, complete = until_complete(socket)
        assert complete == COMPLETE and failed.keys() == {"role", "type", "content"}
        assert (failed["role"], failed["type"]) == ("server", "error") and "Incorrect API key" in failed["content"]
        say(socket, "Hello.")
        assert joined(until_complete(socket)) == "Hi."


def test_output_ends_with_the_error_of_a_turn_and_takes_the_next_message(home: Path) -> None:
    import asyncio

    async def talk(interpreter: Any) -> list[Any]:
        frames = []
        for _ in range(2):
            await interpreter.input({"role": "user", "type": "message", "content": "Hello", "start": True, "end": True})
            frames.append(await interpreter.output())
            while frames[-1] != COMPLETE:
                frames.append(await interpreter.output())
        return frames

    with ModelServer([error(401, {"error": {"message": "Incorrect API key."}}), text("Hi.")]) as model:
        interpreter = AsyncInterpreter()
        interpreter.llm.model, interpreter.llm.api_key, interpreter.llm.api_base = "gpt-4o", "key", model.base_url
        frames = asyncio.run(talk(interpreter))
    failed = frames.index(COMPLETE)
    assert frames[failed - 1]["type"] == "error" and "Incorrect API key" in frames[failed - 1]["content"]
    assert joined(frames[failed + 1 :]) == "Hi."


def test_server_packages_are_imported_only_when_needed() -> None:
    code = (
        "import sys, interpreter\nfrom interpreter import AsyncInterpreter, connect\nAsyncInterpreter()\n"
        "from interpreter.frontends.flags import parse\nparse(['--serve'])\n"
        "assert not {'starlette', 'uvicorn', 'websockets'} & set(sys.modules), sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_voice_client_sends_a_message_in_pieces(home: Path) -> None:
    """As the 01 client does: start, pieces as they are transcribed, end."""
    with serving(text("It is noon. Enjoy.", 3)) as served, client(served) as socket:
        socket.send(json.dumps({"role": "user", "start": True}))
        for piece in ("What ", "time ", "is it?"):
            socket.send(json.dumps({"role": "user", "type": "message", "content": piece}))
        socket.send(json.dumps({"role": "user", "end": True}))
        assert joined(until_complete(socket)) == "It is noon. Enjoy."
        assert served.model.requests[-1].body["messages"][-1]["content"] == "What time is it?"


def test_the_voice_client_runs_code_after_a_yes(home: Path) -> None:
    script = Path(__file__).parents[2] / "compat" / "voice_client.py"
    with serving(text("It is noon. Shall I?", 4), MAKE, text("Made it.")) as served:
        address = served.url.replace("http", "ws", 1) + "/"
        client = subprocess.Popen(
            [sys.executable, str(script), address],
            env={**os.environ, "INTERPRETER_API_KEY": served.users.token},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert client.stdin is not None and client.stdout is not None

        def say_aloud(words: str, *answers: str) -> None:
            print(words, file=client.stdin, flush=True)
            assert [client.stdout.readline().strip() for _ in answers] == list(answers)  # type: ignore[union-attr]

        try:
            say_aloud("What time is it?", "It is noon.", "Shall I?")
            say_aloud("Make the file", "I have written some code. Say yes to run it.")
            assert not Path("made.txt").exists()
            say_aloud("Yes.", "Made it.")
            assert Path("made.txt").exists()
            print("", file=client.stdin, flush=True)
            assert client.wait(LIMIT) == 0
        finally:
            client.kill()
            client.communicate()
