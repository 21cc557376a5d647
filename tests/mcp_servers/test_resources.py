"""Resources and prompts of a server, and servers inside the session's sandbox."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from example_computer_tool import PNG
from interpreter import OpenInterpreter
from interpreter.app.attachments import missing
from interpreter.mcp.config import save_server
from interpreter.sandbox import bubblewrap
from mcp_servers.support import Hostile, edit_own_file, ran, real
from model_server import text

Make = Callable[..., OpenInterpreter]
pytestmark = pytest.mark.usefixtures("no_strays")


@pytest.fixture
def library(hostile: Hostile) -> Hostile:
    """The hostile server with resources and prompts."""
    hostile.set(capabilities={"resources": {}, "prompts": {}})
    return hostile


def test_code_lists_and_reads_resources(session: Make, library: Hostile) -> None:
    interpreter = session()
    output = ran(
        interpreter, "all = tools.bad.resources()\nprint(all['resources'][1]['uri'], all['templates'][0]['name'])"
    )
    assert "note://1 notes" in output
    assert "note://5" in ran(interpreter, "print(tools.bad.read('note://5')['uri'])")
    assert "b'\\x00\\x01\\x02'" in ran(interpreter, "print(tools.bad.read(uri='note://5/bytes'))")
    assert "note://7" in ran(interpreter, "print(tools.bad.read(tools.bad.link())['uri'])")
    assert "note://7" in ran(interpreter, "console.log((await tools.bad.read('note://7')).uri)", "javascript")


def test_a_link_reads_its_resource_when_code_wants_it(session: Make, library: Hostile) -> None:
    interpreter = session()
    code = """
import copy, pickle
link = tools.bad.link()
print(link, link.uri, link.mimeType, link['name'], isinstance(link, dict), 'content' in link.raw)
print([each.read()['uri'] for each in (link, copy.deepcopy(link))], pickle.loads(pickle.dumps(link)).server)
"""
    output = ran(interpreter, code)
    assert "<Link note://7: seven, .read() gets it> note://7 None seven True True" in output
    assert "['note://7', 'note://7'] bad" in output
    code = "const link = await tools.bad.link(); console.log(link.name, Object.keys(link).includes('read'))"
    assert "seven false" in ran(interpreter, code, "javascript")
    assert "note://7" in ran(interpreter, "console.log((await link.read()).uri)", "javascript")


def test_a_resource_is_read_only_after_a_yes(session: Make, library: Hostile) -> None:
    output = ran(session(auto_run=False), "tools.bad.read('note://5')")
    assert "there was no one to ask" in output


def test_a_listing_without_end_is_cut(session: Make, library: Hostile) -> None:
    library.set(capabilities={"resources": {}}, notes=20_000)
    assert "10000" in ran(session(), "print(len(tools.bad.resources()['resources']))")


def test_a_server_without_resources_has_none(session: Make, hostile: Hostile) -> None:
    assert "There is no tools.bad.read" in ran(session(), "tools.bad.read('note://5')")


def test_a_message_can_name_a_resource(chatting: Any, library: Hostile) -> None:
    ran(chatting()[0], "dir(tools.bad)")
    interpreter, server = chatting(text("ok"), auto_run=True)
    interpreter.llm.model_profile = "full"
    interpreter.chat("What does @bad:note://5 say?", display=False)
    request = server.requests[0].messages
    assert "tools.NAME.read('URI')" in request[0]["content"] and "tools.bad.read(uri: " in request[0]["content"]
    assert missing("What does @bad:note://5 say, and @no/such.txt?", ".") == ["no/such.txt?"]


def test_code_gets_prompts(session: Make, library: Hostile) -> None:
    interpreter = session()
    assert "review" in ran(interpreter, "print(tools.bad.prompt()[0]['name'])")
    assert "!echo Review 5" in ran(interpreter, "print(tools.bad.prompt('review', {'pr': '5'}))")


def test_a_prompt_is_sent_as_data_so_it_runs_and_attaches_nothing(
    chatting: Any, library: Hostile, capsys: pytest.CaptureFixture[str]
) -> None:
    from interpreter.frontends.terminal import chat
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.mcp.commands import magic

    interpreter, server = chatting(text("Reviewed."), auto_run=True)
    interpreter.llm.supports_vision = True
    Path(interpreter.workspace, "secret.png").write_bytes(PNG)
    terminal = Terminal(plain=True)
    chat.connect(terminal, interpreter)
    magic(terminal, interpreter, "prompt bad")
    assert "/bad:review pr=...  Review it." in capsys.readouterr().out
    magic(terminal, interpreter, "prompt bad.review pr=./secret.png")
    assert server.requests[-1].messages[-1]["content"].endswith("!echo Review ./secret.png")
    assert "Reviewed." in capsys.readouterr().out


def test_a_prompt_is_a_command_of_its_server(session: Make, library: Hostile) -> None:
    from interpreter.frontends.terminal.chat import _as_command, _expanded

    interpreter = session()
    for typed in ("/bad:review pr=5", "%bad:review pr=5"):
        assert _expanded(interpreter, _as_command(typed)) == "%mcp prompt bad.review pr=5"
    for typed in ("/other:review", "/bad", "bad:review", "%mcp prompt bad:review"):
        assert _expanded(interpreter, _as_command(typed)) in (typed, _as_command(typed))


def test_what_has_a_default_need_not_be_given(session: Make, hostile: Hostile) -> None:
    assert 'ok {"size": 3}' in ran(session(), "print(tools.bad.defaults())")
    assert 'ok {"size": 4}' in ran(session(), "print(tools.bad.defaults(size=4))")


def test_the_everything_servers_resources(session: Make) -> None:
    real("every", "mcp-server-everything")
    interpreter = session()
    assert "Resource 1" in ran(interpreter, "print(tools.every.read('demo://resource/dynamic/text/1'))")
    code = "link = tools.every.get_resource_links(count=2)[1]\nprint(tools.every.read(link))"
    assert "Resource 1" in ran(interpreter, code)
    code = "parts = tools.every.get_resource_links(count=2)\nprint(parts[1].read())"
    assert "Resource 1" in ran(interpreter, code)
    assert "Rome" in ran(interpreter, "print(tools.every.prompt('args-prompt', {'city': 'Rome'}))")


# -- in a sandbox -----------------------------------------------------------------------------------------------------


@pytest.fixture
def sandboxed(session: Make, hostile: Hostile) -> OpenInterpreter:
    try:
        bubblewrap.available()
    except Exception as error:
        pytest.skip(str(error))
    return session(sandbox="workspace")


def move_into_workspace(hostile: Hostile, **more: Any) -> None:
    """Have the server where code in the sandbox sees it, and can change it."""
    for name, source in (("server.py", hostile.row["args"][0]), ("options.json", hostile.row["args"][1])):
        Path(name).write_text(Path(source).read_text())
    args = [str(Path("server.py").absolute()), str(Path("options.json").absolute())]
    save_server("bad", None)
    save_server("bad", {**hostile.row, "args": args, **more})


def touch(path: Path) -> str:
    return f"tools.bad.touch(path={str(path)!r})"


def test_a_server_runs_inside_the_sandbox(sandboxed: OpenInterpreter, hostile: Hostile) -> None:
    move_into_workspace(hostile)
    inside, outside = Path.cwd() / "in.txt", Path.home() / "out.txt"
    ran(sandboxed, touch(inside))
    assert inside.read_text() == "touched"
    ran(sandboxed, touch(outside))  # into the home folder of the sandbox
    assert not outside.exists()


def test_the_users_file_lets_a_server_out(sandboxed: OpenInterpreter) -> None:
    edit_own_file(lambda servers: servers["bad"].update(sandbox=False))
    outside = Path.home() / "out.txt"
    ran(sandboxed, touch(outside))
    assert outside.read_text() == "touched"


def test_what_sandboxed_code_can_write_stays_inside(sandboxed: OpenInterpreter, hostile: Hostile) -> None:
    move_into_workspace(hostile, sandbox=False)
    outside = Path.home() / "out.txt"
    ran(sandboxed, touch(outside))  # into the home folder of the sandbox
    assert not outside.exists()
