"""Our sessions for MCP clients, over standard input and output and on the server, in both generations."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from mcp import types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from mcp_servers.support import marks
from running_server import Serving, serving

ROOT = Path(__file__).parent.parent.parent
MODES = ["legacy", "2026-07-28"]
YES, NO = "yes", "no"
Open = Callable[..., Any]


class Person:
    """Answers the questions that reach a client, and keeps them."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.asked = list(answers), list[str]()

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params.message)
        if not self.answers:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content={"answer": self.answers.pop(0)})


def text_of(result: Any) -> str:
    return "\n".join(part.text for part in result.content if part.type == "text")


@pytest.fixture(scope="module")
def served(module_home: None) -> Iterator[Serving]:
    with serving(server_rate=1_000_000) as running:
        yield running


@pytest.fixture(scope="module")
def module_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        patch.chdir(tmp_path_factory.mktemp("workspace"))
        yield


@asynccontextmanager
async def over_http(served: Serving, mode: str, person: Person | None = None, token: str = "") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token or served.users.token}"}
    async with (
        create_mcp_http_client(headers) as http,
        Client(
            streamable_http_client(f"{served.url}/mcp", http_client=http),
            mode=mode,
            elicitation_callback=person,
            cache=None,
        ) as client,
    ):
        yield client


@asynccontextmanager
async def over_stdio(mode: str, person: Person | None = None, *flags: str) -> AsyncIterator[Client]:
    environment = {**marks(), "HOME": os.environ["HOME"], "PATH": os.environ["PATH"]}
    program = StdioServerParameters(
        command=sys.executable, args=["-m", "interpreter", "--mcp", *flags], env=environment
    )
    async with Client(program, mode=mode, elicitation_callback=person, cache=None) as client:
        yield client


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 120))


async def use(client: Client, person: Person) -> None:
    """What a client can do with a session."""
    assert "run_code" in [tool.name for tool in (await client.list_tools()).tools]
    progress: list[str | None] = []

    async def report(done: float, total: float | None, message: str | None) -> None:
        progress.append(message)

    result = await client.call_tool("run_code", {"code": "x = 41\nopen('a.txt', 'w').write('1')"}, 60)
    assert not result.is_error, text_of(result)
    result = await client.call_tool("run_code", {"code": "print(x + 1)"}, 60, report)
    assert text_of(result).strip() == "42" and progress == ["42"]
    assert "41" in text_of(await client.call_tool("variables", {}))
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    result = await client.call_tool("run_code", {"code": code}, 60)
    assert [part.type for part in result.content if part.type == "image"] == ["image"]
    assert not (await client.call_tool("write_file", {"path": "b/c.txt", "text": "new"})).is_error
    assert text_of(await client.call_tool("read_file", {"path": "b/c.txt"})) == "new"
    assert "--- a/b/c.txt" in person.asked[-1] and "+new" in person.asked[-1]
    forked = json.loads(text_of(await client.call_tool("fork", {})))
    assert "b/c.txt" in text_of(await client.call_tool("undo", {"count": 1}))
    assert (await client.call_tool("read_file", {"path": "b/c.txt"})).is_error
    assert text_of(await client.call_tool("read_file", {"path": "b/c.txt", "session": forked["session"]})) == "new"
    result = await client.call_tool("run_code", {"code": "print(x)", "session": forked["session"]}, 60)
    assert text_of(result).strip() == "41"
    assert forked["session"] in text_of(await client.call_tool("sessions", {}))
    result = await client.call_tool("run_code", {"code": "print('hello', input('Who? '))"}, 60)
    assert text_of(result).strip() == "hello Anna" and "Who? " in person.asked[-1]


ANSWERS = [YES, YES, YES, YES, YES, YES, "Anna"]


@pytest.mark.parametrize("mode", MODES)
def test_a_client_of_the_server_uses_a_session(served: Serving, mode: str) -> None:
    person = Person(*ANSWERS)

    async def work() -> None:
        async with over_http(served, mode, person) as client:
            assert client.protocol_version == ("2025-11-25" if mode == "legacy" else mode)
            await use(client, person)

    run(work())
    assert "Run this python code?\nx = 41" in person.asked[0]


@pytest.mark.parametrize("mode", MODES)
def test_a_client_over_standard_output_uses_a_session(module_home: None, mode: str) -> None:
    person = Person(*ANSWERS)

    async def work() -> None:
        async with over_stdio(mode, person) as client:
            await use(client, person)

    run(work())


@pytest.mark.parametrize("mode", MODES)
def test_a_no_and_a_client_that_cannot_ask_run_nothing(served: Serving, mode: str) -> None:
    async def work() -> None:
        for person, reason in (
            (Person(NO), "the user said no"),
            (Person(), "the user said no"),
            (None, "can't ask the user"),
        ):
            async with over_http(served, mode, person) as client:
                result = await client.call_tool("run_code", {"code": "open('never.txt', 'w')"}, 60)
                assert result.is_error and reason in text_of(result), text_of(result)
                result = await client.call_tool("write_file", {"path": "never.txt", "text": ""}, 60)
                assert "never.txt" not in text_of(await client.call_tool("list_files", {})), text_of(result)

    run(work())
    assert not Path("never.txt").exists()


def test_an_approval_is_the_clients_and_in_the_record(served: Serving) -> None:
    person = Person(YES)

    async def work() -> str:
        async with over_http(served, "legacy", person) as client:
            made = json.loads(text_of(await client.call_tool("new_session", {"title": "Recorded"})))
            await client.call_tool("run_code", {"code": "print('seen')", "session": made["session"]}, 60)
            return str(made["session"])

    session = asyncio.run(work())
    events = served.events(session)
    kinds = [event["kind"] for event in events]
    assert "confirmation" in kinds and "answer" in kinds
    begun = next(event for event in events if event["data"].get("kind") == "block")
    assert begun["actor"].startswith("agent")
    messages = served.http.get(f"/api/sessions/{session}/messages").json()["messages"]
    assert [message["content"] for message in messages][:2] == ["print('seen')", "seen\n"]


def test_an_answer_on_the_page_lets_the_clients_call_go_on(served: Serving) -> None:
    async def never(context: Any, params: Any) -> types.ElicitResult:
        await asyncio.Event().wait()
        raise AssertionError

    async def work() -> None:
        async with over_http(served, "legacy", cast(Person, never)) as client:
            session = json.loads(text_of(await client.call_tool("new_session", {})))["session"]
            for choice, output in (("approve", "42"), ("refuse", "the user said no")):
                code = {"code": "print(6 * 7)", "session": session}
                call = asyncio.create_task(client.call_tool("run_code", code, 60))
                await asyncio.to_thread(served.answer, session, choice)
                assert output in text_of(await call)
            call = asyncio.create_task(client.call_tool("run_code", {**code, "code": "input('Who? ')"}, 60))
            await asyncio.to_thread(served.answer, session, "approve")
            await asyncio.to_thread(served.answer, session, "answer", text="Anna")
            assert "Anna" in text_of(await call)

    run(work())


@pytest.mark.parametrize("mode", MODES)
def test_undo_asks_before_it_undoes_what_the_user_ran(served: Serving, mode: str) -> None:
    async def work() -> None:
        person = Person(YES, NO, YES)
        async with over_http(served, mode, person) as client, over_http(served, mode) as silent:
            session = json.loads(text_of(await client.call_tool("new_session", {})))["session"]
            given = {"session": session}
            await client.call_tool("run_code", {"code": "x = 1", **given}, 60)
            assert not (await client.call_tool("undo", given)).is_error and len(person.asked) == 1
            await asyncio.to_thread(served.run, session, "y = 2")
            for result in (await silent.call_tool("undo", given), await client.call_tool("undo", given)):
                assert result.is_error and "Nothing was changed" in text_of(result)
            assert "undo what" in person.asked[-1] and len(person.asked) == 2
            assert '"y"' in text_of(await client.call_tool("variables", given))
            assert not (await client.call_tool("undo", given)).is_error and len(person.asked) == 3
            assert '"y"' not in text_of(await client.call_tool("variables", given))

    run(work())


def test_a_session_that_was_deleted_is_replaced(served: Serving) -> None:
    async def work() -> None:
        async with over_http(served, "legacy", Person(YES)) as client:
            first = (await client.call_tool("sessions", {})).content
            for row in json.loads(text_of(await client.call_tool("sessions", {}))):
                await asyncio.to_thread(served.http.delete, f"/api/sessions/{row['id']}")
            assert "ok" in text_of(await client.call_tool("run_code", {"code": "print('ok')"}, 60)), first

    run(work())


def test_tokens_and_roles_count_and_users_share_nothing(served: Serving) -> None:
    assert served.client().post("/mcp", json={}).status_code == 401
    assert served.user("viewer:viewer").post("/mcp", json={}).status_code == 403
    token = served.users.add("bert")

    async def work() -> None:
        async with (
            over_http(served, "legacy", Person(YES)) as client,
            over_http(served, "legacy", None, token) as other,
        ):
            made = json.loads(text_of(await client.call_tool("new_session", {})))
            result = await other.call_tool("list_files", {"session": made["session"]})
            assert result.is_error and "no such session" in text_of(result)

    run(work())


def test_a_call_that_is_cancelled_ends(served: Serving) -> None:
    async def work() -> None:
        async with over_http(served, "legacy", Person(YES, YES)) as client:
            with contextlib.suppress(Exception):
                await client.call_tool("run_code", {"code": "import time\ntime.sleep(600)"}, 3)
            result = None
            while result is None or "Wait for it" in text_of(result):  # until the timeout of `run`
                await asyncio.sleep(0.1)
                result = await client.call_tool("run_code", {"code": "print('free again')"}, 60)
            assert "free again" in text_of(result)

    run(work())


def test_mistakes_are_plain(served: Serving) -> None:
    async def work() -> None:
        async with over_http(served, "legacy", Person(YES)) as client:
            for name, arguments, problem in (
                ("run_code", {"cod": "1"}, "cod is unknown (did you mean code?)"),
                ("run_code", {"code": "1", "language": "klingon"}, "no language 'klingon'"),
                ("read_file", {"path": "../secret"}, ""),
                ("variables", {"session": "0" * 12}, "no such session"),
                ("nothing", {}, "There is no tool"),
            ):
                result = await client.call_tool(name, arguments)
                assert result.is_error and problem in text_of(result) and "Traceback" not in text_of(result)

    run(work())


def test_with_y_nothing_is_asked(module_home: None) -> None:
    async def work() -> None:
        async with over_stdio("legacy", None, "-y") as client:
            assert "42" in text_of(await client.call_tool("run_code", {"code": "print(6 * 7)"}, 60))

    run(work())


@pytest.mark.full
def test_the_inspector_calls_a_tool(module_home: None) -> None:
    program = shutil.which("mcp-inspector")
    if program is None:
        pytest.skip("The inspector is not installed: npm install --global @modelcontextprotocol/inspector")
    ours = [sys.executable, "-m", "interpreter", "--mcp", "-y"]
    call = ["--method", "tools/call", "--tool-name", "run_code", "--tool-arg", "code=print(6*7)"]
    done = subprocess.run([program, "--cli", *ours, *call], capture_output=True, text=True, timeout=120)
    assert json.loads(done.stdout)["content"] == [{"type": "text", "text": "42\n"}], done.stderr


# -- each half without the other --------------------------------------------------------------------------------------

SERVING = """
from running_server import serving
with serving() as served:
    print(served.http.post("/mcp", json={}).status_code, served.run(served.session(), "print(6 * 7)").strip())
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of the package, in which a folder can be deleted."""
    shutil.copytree(ROOT / "src" / "interpreter", tmp_path / "interpreter")
    return tmp_path


def test_the_server_works_without_mcp(home: Path, source: Path) -> None:
    shutil.rmtree(source / "interpreter" / "mcp")
    path = os.pathsep.join([str(source), str(ROOT / "tests")])
    done = subprocess.run(
        [sys.executable, "-c", SERVING], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.stdout == "404 42\n", done.stderr


def test_mcp_works_without_the_server(home: Path, source: Path) -> None:
    shutil.rmtree(source / "interpreter" / "frontends" / "server")

    async def work() -> None:
        environment = {**marks(), "HOME": os.environ["HOME"], "PATH": os.environ["PATH"], "PYTHONPATH": str(source)}
        program = StdioServerParameters(
            command=sys.executable, args=["-m", "interpreter", "--mcp", "-y"], env=environment
        )
        async with Client(program, cache=None) as client:
            assert "42" in text_of(await client.call_tool("run_code", {"code": "print(6 * 7)"}, 60))

    run(work())
