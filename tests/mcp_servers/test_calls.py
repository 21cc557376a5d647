"""Tools of MCP servers as functions in code: values, signatures, errors, parallel calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from interpreter import OpenInterpreter
from mcp_servers.support import Hostile, ran, real

Make = Callable[..., OpenInterpreter]
pytestmark = pytest.mark.usefixtures("no_strays")


def test_a_text_is_a_value_in_both_languages(session: Make, hostile: Hostile) -> None:
    interpreter = session()
    assert "'hi hi'" in ran(interpreter, "print(repr(str(tools.bad.echo('hi', times=2))))")
    assert "hi hi" in ran(interpreter, "console.log(await tools.bad.echo('hi', {times: 2}))", "javascript")


def test_json_and_structured_content_are_plain_values(session: Make, hostile: Hostile) -> None:
    interpreter = session()
    code = "rows = tools.bad.rows()\nprint(isinstance(rows, list), rows[0]['b'], rows.raw['structuredContent'])\nprint(rows.table().shape)"
    output = ran(interpreter, code)
    assert "True None {'result': [{'a': 1, 'b': None}, {'a': 2, 'b': 'x'}]}" in output and "(2, 2)" in output
    code = "const rows = await tools.bad.rows(); console.log(JSON.stringify(rows), Object.keys(rows.raw).includes('content'))"
    assert '[{"a":1,"b":null},{"a":2,"b":"x"}] true' in ran(interpreter, code, "javascript")
    assert "True" in ran(interpreter, "print('PATH' in tools.bad.environment())")  # one JSON object as text


def test_help_and_completion_know_the_signature(session: Make, hostile: Hostile) -> None:
    interpreter = session()
    output = ran(interpreter, "help(tools.bad.echo)")
    assert "echo(text: str, times: int = None)" in output and "Says it again." in output and "what to say" in output
    output = ran(
        interpreter, "import inspect\nprint(inspect.signature(tools.bad.echo), dir(tools), 'hang' in dir(tools.bad))"
    )
    assert "(text: str, times: int = None) ['bad', 'help', 'search'] True" in output
    completions = interpreter.computer.runtimes.complete("python", "tools.bad.ec", 12)
    assert "echo" in str(completions)


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("tools.bad.echo(txt='a')", "txt is unknown (did you mean text?)"),
        ("tools.bad.echo()", "text is missing"),
        ("tools.bad.echo(text=5)", "text must be a string"),
        ("tools.bad.ech(text='a')", "Did you mean tools.bad.echo?"),
    ],
)
def test_a_mistake_raises_with_the_signature(session: Make, hostile: Hostile, code: str, problem: str) -> None:
    output = ran(session(), code)
    assert problem in output and ("echo(text: string, times: integer = ...)" in output or "tools.bad.echo" in output)


def test_several_calls_run_at_the_same_time(session: Make, hostile: Hostile) -> None:
    """Each call of `slow` returns only when all five are there."""
    code = "import asyncio\nprint(await asyncio.gather(*[tools.bad.slow(count=5) for _ in range(5)]))"
    assert ran(session(), code).count("together") == 5
    code = "from concurrent.futures import ThreadPoolExecutor\nprint(list(ThreadPoolExecutor(5).map(lambda _: tools.bad.slow(count=5), range(5))))"
    assert ran(session(), code).count("together") == 5
    code = "console.log(await Promise.all([1, 2, 3, 4, 5].map(() => tools.bad.slow({count: 5}))))"
    assert ran(session(), code, "javascript").count("together") == 5


def test_a_failing_tool_raises_what_it_says(session: Make, hostile: Hostile) -> None:
    output = ran(session(), "try:\n    tools.bad.fail()\nexcept RuntimeError as error:\n    print('caught', error)")
    assert "caught bad.fail failed: The disk is on fire." in output


def test_a_large_result_stays_in_the_variable(session: Make, hostile: Hostile) -> None:
    interpreter = session()
    assert "3000000" in ran(interpreter, "big = tools.bad.big(size=3_000_000)\nprint(len(big))")
    assert "is too much" in ran(interpreter, "tools.bad.big(size=50_000_000)")
    assert "hi" in ran(interpreter, "tools.bad.echo('hi')")


def test_names_that_python_has_not_can_be_used(session: Make, hostile: Hostile) -> None:
    output = ran(session(), "print(tools.bad.odd_name_with_spaces(**{'user-id': 'me'}))")
    assert 'ok {"user-id": "me"}' in output


def test_a_schema_without_sense_takes_anything(session: Make, hostile: Hostile) -> None:
    assert 'ok {"a": [1], "b": 2}' in ran(session(), "print(tools.bad.bad_schema(a=[1], b=2))")


def test_a_listing_that_breaks_the_protocol_is_one_plain_error(session: Make, hostile: Hostile) -> None:
    hostile.set(broken=True)
    output = ran(session(), "tools.bad.echo('a')")
    assert "The MCP server bad lists its tools in a form that the protocol doesn't allow" in output


def test_the_servers_environment_has_no_keys(session: Make, hostile: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    output = ran(session(), "print(sorted(tools.bad.environment()))")
    assert "'PATH'" in output and "SOME_API_KEY" not in output and "PYTHONPATH" not in output


def test_a_hidden_character_of_a_description_is_shown(session: Make, hostile: Hostile) -> None:
    output = ran(session(), "print(ascii(tools.help('bad.injected')))")
    assert "\\u202e" not in output.replace("\\\\u202e", "") and "\\x1b" not in output.replace("\\\\x1b", "")


def test_a_server_of_the_first_revision_works(session: Make, hostile: Hostile) -> None:
    hostile.set(version="2024-11-05")
    assert "hi" in ran(session(), "print(tools.bad.echo('hi'))")


# -- real servers ---------------------------------------------------------------------------------------------------


def test_the_time_server(session: Make) -> None:
    real("time", "mcp-server-time")
    output = ran(session(), "print(tools.time.get_current_time(timezone='UTC')['timezone'])")
    assert output.endswith("UTC\n")


def test_the_git_server(session: Make, tmp_path: Any) -> None:
    import subprocess

    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "new.txt").write_text("x")
    real("git", "mcp-server-git", "--repository", str(tmp_path))
    assert "new.txt" in ran(session(), f"print(tools.git.git_status(repo_path={str(tmp_path)!r}))")


def test_the_filesystem_server_and_undo(session: Make, tmp_path: Any) -> None:
    real("files", "mcp-server-filesystem", str(tmp_path))
    interpreter = session(workspace=str(tmp_path))
    ran(interpreter, f"tools.files.write_file(path={str(tmp_path / 'note.txt')!r}, content='hello')")
    assert (tmp_path / "note.txt").read_text() == "hello"
    interpreter.undo()
    assert not (tmp_path / "note.txt").exists()


def test_the_memory_server(session: Make, tmp_path: Any) -> None:
    real("memory", "mcp-server-memory")
    from interpreter.mcp.config import own_file

    text = own_file().read_text().replace('"env": {', f'"env": {{"MEMORY_FILE_PATH": "{tmp_path / "memory.jsonl"}", ')
    own_file().write_text(text)
    code = "tools.memory.create_entities(entities=[{'name': 'Ada', 'entityType': 'person', 'observations': ['counts']}])\nprint(tools.memory.search_nodes(query='Ada')['entities'][0]['observations'])"
    assert "['counts']" in ran(session(), code)


def test_the_everything_server_has_pictures(session: Make) -> None:
    real("every", "mcp-server-everything")
    interpreter = session()
    output = ran(interpreter, "picture = tools.every.get_tiny_image()[1]\nprint(type(picture).__name__, picture.size)")
    assert "Picture (20, 20)" in output
    assert "'conditions'" in ran(interpreter, "print(tools.every.get_structured_content(location='Chicago'))")
    output = ran(interpreter, "tools.every.trigger_long_running_operation(duration=0.2, steps=2)")
    assert "100 %" in output
