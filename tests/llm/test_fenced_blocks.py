"""Text mode: fenced blocks in a reply become code, however the reply is cut into pieces."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpreter.llm.text_mode import TextParser, language_of
from scripted_llm import folded


def parse(pieces: list[str]) -> list[Any]:
    parser = TextParser()
    chunks = [chunk for piece in pieces for chunk in parser.feed(piece)]
    return folded(chunks + parser.finish())


def reference(text: str) -> list[Any]:
    """A reference implementation for a whole text: line by line, with no state but the open fence."""
    lines = text.replace("\r\n", "\n").split("\n")
    out: list[Any] = []
    prose = ""
    block: Any = None
    for number, line in enumerate(lines):
        last = number == len(lines) - 1
        if block:
            fence, indent, language, code = block
            short = len(line) <= 256
            if short and re.fullmatch(rf"[ \t]{{0,{indent + 3}}}{fence[0]}{{{len(fence)},}}[ \t]*", line):
                out.append((language, "\n".join(code)))
                block = None
            elif not (last and line == ""):
                margin = min(indent, len(line) - len(line.lstrip(" \t")))
                code.append(line[margin:])
            continue
        found = len(line) <= 256 and re.fullmatch(r"([ \t]*)(`{3,}(?!.*`)|~{3,})(.*)", line)
        if found and not last:
            before, indent, fence, info = "", len(found[1]), found[2], found[3]
        else:
            found = re.fullmatch(r"(.*?)(?<!`)(`{3,})([A-Za-z][\w+#-]{0,40})[ \t]{0,40}", line)
            if not found or last:
                prose += line if last else line + "\n"
                continue
            before, indent, fence, info = found[1], 0, found[2], found[3]
        prose += before
        out += [prose] if prose else []
        prose, block = "", (fence, indent, language_of(info), [])
    if block:
        out.append((block[2], "\n".join(block[3])))
    return out + ([prose] if prose else [])


REPLIES = {
    "plain": "Just words.",
    "block": "Sure.\n\n```python\nprint(1)\n```\n",
    "two blocks and prose": "a\n```python\nx = 1\n```\nb\n\n```shell\nls\n```\nc",
    "tildes": "~~~js\nlet a = `x`\n~~~\n",
    "longer fence": "````markdown\n```python\n1\n```\n````\nafter",
    "indented": "1. First:\n   ```python\n   if x:\n       y\n   ```\n2. done",
    "no language": "```\nprint(1)\n```",
    "inline code": "Use `a` and ``b`` and ```c``` here.",
    "inline at line start": "`a` is b\n``x`` too\n```y``` as well\n",
    "unclosed": "```python\nprint(1)\n",
    "unclosed without newline": "```python\nprint(1)",
    "crlf": "Hi\r\n```python\r\na\r\nb\r\n```\r\nbye\r\n",
    "fence after text": "Run this: ```python\nprint(1)\n```",
    "language word in code": "```r\nprint('r r r')\n```\n```python\nprint('python rocks')\n```",
    "wrong closer": "```python\n~~~\n``\n    ```\n```\n",
    "empty block": "```python\n```\nthen",
    "blank lines": "```python\n\na\n\n\nb\n\n```",
    "only the fence": "```python",
    "info string": '```python title="x" {1,3}\n1\n```\n``` {.r}\n2\n```\n```Python3\n3\n```',
}


@pytest.mark.parametrize("text", REPLIES.values(), ids=REPLIES.keys())
def test_splitting_a_reply_anywhere_gives_the_same_blocks(text: str) -> None:
    whole = reference(text)
    assert parse([text]) == whole
    assert parse(list(text)) == whole
    for at in range(len(text)):
        assert parse([text[:at], text[at:]]) == whole


@given(
    st.lists(
        st.one_of(
            st.sampled_from(["```", "````", "~~~", "`", "``", "\n", "\r\n", "\r", " ", "   ", "\t"]),
            st.sampled_from(["python", "r", "x = 1", "say `a`", "{.js}", "#", "\n```\n", "\n```python\n"]),
            st.text(alphabet="`~ \nab\r", max_size=6),
        ),
        max_size=14,
    ).map("".join),
    st.data(),
)
def test_any_split_of_any_text_parses_like_the_whole_text(text: str, data: Any) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert parse(pieces) == parse([text]) == parse(list(text)) == reference(text)


def test_an_overlong_line_is_not_a_fence() -> None:
    opening = ("```" + "x" * 300 + "\nprose\n", " " * 300 + "```python\n1\n```", "`" * 400 + "py\n1\n")
    for text in (*opening, "```\n" + "`" * 300):
        assert parse([text]) == parse(list(text)) == reference(text)


def test_code_streams_while_it_arrives() -> None:
    parser = TextParser()
    assert parser.feed("Hi\n```pyth") == [{"type": "message", "content": "Hi\n"}]
    assert parser.feed("on\nprint(1") == [{"type": "code", "format": "python", "content": "print(1"}]
    assert parser.feed(")\n``") == [{"type": "code", "format": "python", "content": ")"}]
    assert parser.feed("`\n") == [{"type": "code", "format": "python", "end": True}]


def test_replies_are_parsed_into_text_and_blocks() -> None:
    two = ["a\n", ("python", "x = 1"), "b\n\n", ("shell", "ls"), "c"]
    assert parse([REPLIES["two blocks and prose"]]) == two
    assert parse([REPLIES["indented"]]) == ["1. First:\n", ("python", "if x:\n    y"), "2. done"]
    assert parse([REPLIES["longer fence"]]) == [("markdown", "```python\n1\n```"), "after"]
    assert parse([REPLIES["fence after text"]]) == ["Run this: ", ("python", "print(1)")]
    assert parse([REPLIES["info string"]]) == [("python", "1"), ("r", "2"), ("Python", "3")]
    assert parse([REPLIES["crlf"]]) == ["Hi\n", ("python", "a\nb"), "bye\n"]
    assert parse([REPLIES["wrong closer"]]) == [("python", "~~~\n``\n    ```")]


def test_the_parser_never_buffers_more_than_one_possible_fence_line() -> None:
    """Otherwise parsing a long reply would take quadratic time."""
    parser = TextParser()
    held = 0
    for piece in list("```python\n" + "x = '`' * 3  # `\n" * 300 + "a" * 5000):
        parser.feed(piece)
        held = max(held, len(parser._text))
    assert held <= 256
