"""Tool mode: calls become code while their JSON arrives, even if a server mangles it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpreter.llm.reply_parser import ReplyParser
from interpreter.llm.tool_mode import CallArguments
from model_server import Reply, events, reasoning, text, tool_call
from scripted_llm import folded


def parse(pieces: list[str], name: str = "execute") -> list[Any]:
    call = CallArguments(name)
    return folded([chunk for piece in pieces for chunk in call.feed(piece)] + call.finish())


def parse_reply(reply: Reply, fences: bool = False) -> list[Any]:
    parser = ReplyParser(fences=fences)
    chunks = []
    for event in events(reply):
        assert isinstance(event, bytes)
        if b"[DONE]" not in event:
            chunks += parser.feed(json.loads(event.removeprefix(b"data: ")))
    return folded(chunks + parser.finish())


def call(language: str, code: str) -> str:
    return json.dumps({"language": language, "code": code})


ARGUMENTS: dict[str, tuple[str, list[Any]]] = {
    "plain": (call("python", "print(1)\n"), [("python", "print(1)\n")]),
    "escapes": (call("python", 'a = "\\n\t\\"" # \x00 / é 😀'), [("python", 'a = "\\n\t\\"" # \x00 / é 😀')]),
    "code first": ('{"code": "ls", "language": "shell"}', [("shell", "ls")]),
    "code alone": ('{"code": "1"}', [("python", "1")]),
    "raw newlines": ('{"language": "python", "code": "a\n\tb"}', [("python", "a\n\tb")]),
    "quotes not escaped": ('{"language": "python", "code": "print("hi")"}', [("python", 'print("hi")')]),
    "keys not quoted": ('{language: "python", code: "a = 1"}', [("python", "a = 1")]),
    "single quotes": ("{'language': 'python', 'code': 'a = \"x\"'}", [("python", 'a = "x"')]),
    "unknown escape": (r'{"language": "r", "code": "match(\'\d\')"}', [("r", r"match('\d')")]),
    "lone surrogates": (r'{"language": "r", "code": "\ud83d\ude00 \ud83d x \ude00"}', [("r", "😀 � x �")]),
    "list of lines": ('{"language": "python", "code": ["a", "b"]}', [("python", "a\nb")]),
    "null": ('{"language": "python", "code": null}', [("python", "")]),
    "other keys": ('{"why": {"x": [1, "}"]}, "language": "r", "code": "1", "n": 3}', [("r", "1")]),
    "trailing comma": ('{"language": "python", "code": "1",}', [("python", "1")]),
    "no value": ('{"language": "python", "code": }', [("python", "")]),
    "extra braces": ('{"language": "python", "code": "1"}}}', [("python", "1")]),
    "two objects": (call("python", "1") + call("shell", "2"), [("python", "1"), ("shell", "2")]),
    "JSON inside a string": (json.dumps(call("python", "a = '\\n'")), [("python", "a = '\\n'")]),
    "ends in an escape": ('{"language": "python", "code": "ab\\', [("python", "ab")]),
    "ends in the code": ('{"language": "python", "code": "ab', [("python", "ab")]),
    "ends in the language": ('{"language": "pyth', [("pyth", "")]),
    "empty": ("", [("python", "")]),
    "empty object": ("{}", [("python", "")]),
    "not JSON": ("print(1)", [("python", "print(1)")]),
}


@pytest.mark.parametrize(("arguments", "blocks"), ARGUMENTS.values(), ids=ARGUMENTS.keys())
def test_splitting_arguments_anywhere_gives_the_same_blocks(arguments: str, blocks: list[Any]) -> None:
    assert parse([arguments]) == blocks
    assert parse(list(arguments)) == blocks
    for at in range(len(arguments)):
        assert parse([arguments[:at], arguments[at:]]) == blocks


@given(st.text(max_size=60), st.sampled_from(["python", "c++", "R"]), st.booleans(), st.booleans(), st.data())
def test_any_code_survives_any_split(code: str, language: str, plain: bool, code_first: bool, data: Any) -> None:
    fields = {"code": code, "language": language} if code_first else {"language": language, "code": code}
    arguments = json.dumps(fields, ensure_ascii=plain)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(arguments)), max_size=8)))
    pieces = [arguments[a:b] for a, b in zip([0, *cuts], [*cuts, len(arguments)], strict=True)]
    assert parse(pieces) == parse(list(arguments)) == [(language, code)]


@given(st.text(alphabet="{}[]\",:\\'u0d83 \nabclanguagecode", max_size=60), st.data())
def test_any_split_of_garbage_gives_the_same_blocks(arguments: str, data: Any) -> None:
    at = data.draw(st.integers(0, len(arguments)))
    assert parse([arguments]) == parse(list(arguments)) == parse([arguments[:at], arguments[at:]])


@pytest.mark.parametrize("name", ["python", "functions"])
def test_other_tool_names_may_have_bare_code_as_arguments(name: str) -> None:
    for code in ("print(1)", "{1: 2}", "{'a': 1}", "{", '{"x": 1}'):
        assert parse([code], name) == parse(list(code), name) == [("python", code)]
    for arguments in (call("shell", "ls"), '{"code": "ls", "language": "shell"}'):
        assert parse([arguments], name) == parse(list(arguments), name) == [("shell", "ls")]


def test_code_streams_while_it_arrives() -> None:
    call = CallArguments()
    assert call.feed('{"language": "pyth') == []
    assert call.feed('on", "code": "pri') == [{"type": "code", "format": "python", "content": "pri"}]
    assert call.feed("nt(1)\\") == [{"type": "code", "format": "python", "content": "nt(1)"}]
    assert call.feed("n2") == [{"type": "code", "format": "python", "content": "\n2"}]
    assert call.feed('"}') == [{"type": "code", "format": "python", "end": True}]


TWO = [("python", "1"), ("shell", "ls")]


@pytest.mark.parametrize("split", [None, "characters", 3])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"id": "a", "index": 0}, {"id": "b", "index": 1}),
        ({"id": "a", "index": 0}, {"id": "b", "index": 0}),
        ({"id": None, "index": 0}, {"id": None, "index": 1}),
        ({"id": None, "index": None}, {"id": None, "index": None}),
        ({"id": "a", "index": None}, {"id": "b", "index": None}),
        ({"id": "a", "index": 0}, {"id": "a", "index": 1}),
        ({"id": "", "index": 3}, {"id": "", "index": 7}),
        ({"id": None, "index": 0}, {"id": None, "index": 0}),
    ],
)
def test_two_calls_become_two_blocks_with_any_ids_and_indexes(split: Any, first: Any, second: Any) -> None:
    reply = tool_call("python", "1", split, **first).then(tool_call("shell", "ls", split, **second))
    assert parse_reply(reply) == TWO


def test_interleaved_calls_become_consecutive_blocks() -> None:
    one, two = tool_call("python", "1", 5, index=0, id="a"), tool_call("shell", "ls", 5, index=1, id="b")
    deltas = [delta for pair in zip(one.deltas, two.deltas, strict=False) for delta in pair]
    rest = one.deltas[len(two.deltas) :] + two.deltas[len(one.deltas) :]
    assert parse_reply(Reply((*deltas, *rest))) == TWO


def test_a_whole_call_may_arrive_in_one_delta() -> None:
    assert parse_reply(tool_call(arguments={"language": "shell", "code": "ls"})) == [("shell", "ls")]
    old = {"function_call": {"name": "execute", "arguments": call("r", "1")}}
    assert parse_reply(Reply((old,))) == [("r", "1")]


def test_a_name_or_id_repeated_in_every_delta_is_still_one_call() -> None:
    whole = call("python", "print(1)")
    calls = [{"function": {"name": "execute", "arguments": piece}} for piece in [*whole, "", " "]]
    deltas = tuple({"tool_calls": [{"index": 0, "id": "a", "_first": False, **call}]} for call in calls)
    assert parse_reply(Reply(deltas)) == [("python", "print(1)")]


def test_text_around_calls_keeps_its_place() -> None:
    first, second = tool_call("python", "1"), tool_call("shell", "ls", 4, id="b")
    reply = text("Now:", 2).then(first).then(text("\n")).then(second).then(text("Done.", 2))
    assert parse_reply(reply) == ["Now:", *TWO, "Done."]


def test_text_in_the_middle_of_a_call_comes_after_it() -> None:
    cut = tool_call("python", "print(1)", 10).deltas
    assert parse_reply(Reply((*cut[:2], {"content": "hm"}, *cut[2:]))) == [("python", "print(1)"), "hm"]


def test_surrogate_pairs_split_across_deltas_are_joined() -> None:
    words = ({"content": "a\ud83d"}, {"content": "\ude00b"}, {"content": "\ud83dc"})
    assert parse_reply(Reply(words)) == ["a😀b�c"]
    begun = tool_call(arguments='{"language": "r", "code": "\ud83d', index=0)
    assert parse_reply(begun.then(tool_call(arguments='\ude00"}', name=None, id=None, index=0))) == [("r", "😀")]


def test_reasoning_is_passed_on_separately() -> None:
    parser = ReplyParser(fences=False)
    for key in ("reasoning_content", "reasoning"):
        delta = reasoning("hm", key=key).deltas[0]
        assert parser.feed({"choices": [{"delta": delta}]}) == [{"type": "reasoning", "content": "hm"}]


def test_only_a_few_characters_of_code_are_held_back() -> None:
    """So that the work per piece does not grow with what came before."""
    parser = CallArguments()
    held = 0
    for piece in call("python", "x = \"é\\n\" + '😀'  # comment\n" * 400):
        parser.feed(piece)
        held = max(held, len(parser._text) - parser._at)
    assert held < 32
