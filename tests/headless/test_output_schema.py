"""`--output_schema`: the final answer is JSON that matches the schema, or the program says that it does not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from interpreter.host.installation import install_hint
from model_server import ModelServer, text, tool_call
from profiles.programs import interpreter
from terminal.person import PROGRAM

SCHEMA = {
    "type": "object",
    "properties": {"count": {"type": "integer"}, "names": {"type": "array", "items": {"type": "string"}}},
    "required": ["count"],
}


@pytest.fixture
def schema(tmp_path: Path) -> str:
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(SCHEMA))
    return str(file)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param('{"count": 3}', marks=pytest.mark.full),
        'Here it is:\n```json\n{"count": 3}\n```\n',
        pytest.param('```\n{"count": 3}\n```', marks=pytest.mark.full),
    ],
)
def test_standard_output_has_only_the_value(schema: str, answer: str) -> None:
    with ModelServer([tool_call("python", "print('working')"), text(answer)]) as server:
        done = interpreter("-y", "--output-schema", schema, "count them", server=server)
        asked = server.requests[0].messages[-1]["content"]
    assert (done.returncode, json.loads(done.stdout)) == (0, {"count": 3})
    assert "working" in done.stderr
    assert asked.startswith("count them\n")
    assert '"required": ["count"]' in asked


def test_the_model_is_asked_again_with_the_validation_errors(schema: str) -> None:
    replies = [text("Three."), text('{"count": "three", "names": [1]}'), text('{"count": 3}')]
    with ModelServer(replies) as server:
        done = interpreter("--output_schema", schema, "count", server=server)
        corrections = [request.messages[-1]["content"] for request in server.requests[1:]]
    assert (done.returncode, json.loads(done.stdout)) == (0, {"count": 3})
    assert "not JSON" in corrections[0]
    assert "$.count: 'three' is not of type 'integer'" in corrections[1]
    assert "$.names[0]: 1 is not of type 'string'" in corrections[1]


@pytest.mark.parametrize("output_option", ["--plain", pytest.param("--json", marks=pytest.mark.full)])
def test_it_gives_up_after_two_more_tries(schema: str, output_option: str) -> None:
    with ModelServer([text("Three.")] * 4) as server:
        done = interpreter(output_option, "--output_schema", schema, "count", server=server)
        assert len(server.requests) == 3
    assert done.returncode == 6
    if output_option == "--json":
        last = json.loads(done.stdout.splitlines()[-1])["content"]
        assert (last["exit_code"], last["result"]) == (6, None)
    else:
        assert done.stdout == ""
        assert "does not match" in done.stderr


@pytest.mark.full
def test_max_turns_covers_all_tries(schema: str) -> None:
    with ModelServer([text("Three.")] * 4) as server:
        done = interpreter("--output_schema", schema, "--max_turns", "2", "count", server=server)
        assert len(server.requests) == 2
    assert done.returncode == 5


@pytest.mark.full
def test_the_last_event_contains_the_value(schema: str) -> None:
    with ModelServer([text("Three."), text('{"count": 3}')]) as server:
        done = interpreter("--json", "--output_schema", schema, "count", server=server)
    stream = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, stream[-1]["content"]["result"]) == (0, {"count": 3})
    assert len({event["turn"] for event in stream if event["turn"]}) == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(None, "cannot be read", marks=pytest.mark.full),
        pytest.param("{", "is not JSON", marks=pytest.mark.full),
        ('{"type": "integr"}', "is not a JSON Schema"),
    ],
)
def test_an_invalid_schema_is_reported_before_any_request(tmp_path: Path, content: str | None, words: str) -> None:
    file = tmp_path / "schema.json"
    if content is not None:
        file.write_text(content)
    with ModelServer([text("Hello.")]) as server:
        done = interpreter("--output_schema", str(file), "count", server=server)
        assert server.requests == []
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


@pytest.mark.full
def test_a_reference_to_a_url_is_not_followed(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    with ModelServer([text('{"count": 3}')]) as server:
        file.write_text(json.dumps({"$ref": f"{server.address}/schema.json"}))
        done = interpreter("--output_schema", str(file), "count", server=server)
        assert [request.method for request in server.requests] == ["POST"]
    assert done.returncode == 2
    assert "which is not in the file" in done.stderr


def test_a_missing_package_is_named(schema: str) -> None:
    hidden = f"import sys; sys.modules['jsonschema'] = None\n{PROGRAM}"
    done = subprocess.run(
        [sys.executable, "-c", hidden, "--output_schema", schema, "count"],
        capture_output=True,
        text=True,
        timeout=60,
        input="",
    )
    assert done.returncode == 1
    assert install_hint("schema") in done.stderr
