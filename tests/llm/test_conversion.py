"""Converting a conversation into a request, with tools and as plain text."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from interpreter.errors import UnknownMessageError
from interpreter.llm.request import (
    MAX_IMAGE_BYTES,
    Forms,
    Memory,
    convert,
    image_url,
)
from interpreter.llm.text_mode import TextChat
from interpreter.llm.tool_mode import ToolChat
from interpreter.messages import Message

SYSTEM: Message = {"role": "system", "type": "message", "content": "Be brief."}
IMAGE: Message = {"role": "computer", "type": "image", "format": "base64.png", "content": "iVBO"}


def user(content: str) -> Message:
    return {"role": "user", "type": "message", "content": content}


def said(content: str) -> Message:
    return {"role": "assistant", "type": "message", "content": content}


def code(content: str, language: str = "python") -> Message:
    return {"role": "assistant", "type": "code", "format": language, "content": content}


def output(content: str, **more: Any) -> Message:
    return {"role": "computer", "type": "console", "format": "output", "content": content, **more}  # type: ignore[typeddict-item]


def with_tools(*messages: Message, memory: Memory | None = None, **forms: Any) -> list[dict[str, Any]]:
    return convert([SYSTEM, *messages], ToolChat(), Forms(**forms), memory or Memory())[1:]


def as_text(*messages: Message, memory: Memory | None = None, **forms: Any) -> list[dict[str, Any]]:
    sent = Forms(output_template="Output:\n{content}\nNext?", empty_output_template="Nothing. Next?", **forms)
    return convert([SYSTEM, *messages], TextChat(sent), sent, memory or Memory())[1:]


def calls(*arguments: str, first: int = 1, content: str = "") -> dict[str, Any]:
    made = [
        {"id": f"toolu_{number}", "type": "function", "function": {"name": "execute", "arguments": each}}
        for number, each in enumerate(arguments, first)
    ]
    return {"role": "assistant", "content": content, "tool_calls": made}


def result(content: str, number: int = 1) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"toolu_{number}", "name": "execute", "content": content}


class TestWithTools:
    def test_a_block_and_its_output_are_a_call_and_its_result(self) -> None:
        assert with_tools(user("Hi"), code("print(1)"), output("1\n"), said("One.")) == [
            {"role": "user", "content": "Hi"},
            calls('{"language": "python", "code": "print(1)"}'),
            result("1"),
            {"role": "assistant", "content": "One."},
        ]

    def test_empty_output_is_reported(self) -> None:
        assert with_tools(code("pass"), output(""))[-1] == result("No output")

    def test_text_before_a_call_is_sent_with_the_call(self) -> None:
        assert with_tools(said("Look: "), code("1"), output("1"))[0] == calls(
            '{"language": "python", "code": "1"}', content="Look:"
        )

    def test_consecutive_blocks_become_separate_calls(self) -> None:
        sent = with_tools(code("1"), output("1"), said("And"), code("2", "r"), output("2"))
        assert sent == [
            calls('{"language": "python", "code": "1"}'),
            result("1"),
            calls('{"language": "r", "code": "2"}', first=2, content="And"),
            result("2", 2),
        ]

    def test_blocks_proposed_together_get_their_outputs_in_order(self) -> None:
        sent = with_tools(code("1"), code("2"), output("one"), output("two"))
        assert [message["content"] for message in sent] == ["", "one", "two"]
        assert len(sent[0]["tool_calls"]) == 2

    def test_code_that_did_not_run_gets_a_result_saying_so(self) -> None:
        sent = with_tools(code("rm x"), user("No!"))
        assert sent[1:] == [result("This code was not run."), {"role": "user", "content": "No!"}]
        assert with_tools(code("rm x"))[-1] == result("This code was not run.")

    def test_output_without_a_call_becomes_a_user_message(self) -> None:
        sent = with_tools(user("Hi"), output("late\n"))
        assert sent[-1] == {"role": "user", "content": "Output on this computer:\nlate"}

    def test_an_image_follows_the_results(self) -> None:
        sent = with_tools(code("plot()"), IMAGE, output("done"), vision=True)
        assert sent[1] == result("The output is the image that follows.\ndone")
        assert sent[2]["role"] == "user"
        assert sent[2]["content"][1] == {
            "type": "image_url",
            "image_url": {"url": "data:image/png;base64,iVBO", "detail": "low"},
        }

    def test_code_outside_ascii_stays_readable(self) -> None:
        assert with_tools(code("print('é')"))[0] == calls("""{"language": "python", "code": "print('é')"}""")


class TestAsText:
    def test_blocks_are_fenced_and_outputs_use_the_template(self) -> None:
        assert as_text(user("Hi"), said("Sure."), code("print(1)"), output("1\n"), said("One.")) == [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Sure.\n```python\nprint(1)\n```"},
            {"role": "user", "content": "Output:\n1\nNext?"},
            {"role": "assistant", "content": "One."},
        ]

    def test_empty_output_has_its_own_template(self) -> None:
        assert as_text(code("pass"), output(""))[-1]["content"] == "Nothing. Next?"

    def test_several_outputs_of_a_block_are_joined(self) -> None:
        assert as_text(code("x"), output("1"), output("2"))[-1]["content"] == "Output:\n1\n2\nNext?"

    def test_output_can_be_sent_as_the_assistant(self) -> None:
        sent = as_text(code("1"), output("1"), output_sender="assistant")
        assert sent == [{"role": "assistant", "content": "```python\n1\n```\n```output\n1\n```"}]

    def test_code_that_did_not_run_is_reported(self) -> None:
        sent = as_text(code("rm x"), user("No!"))
        assert sent[-1] == {"role": "user", "content": "The code above was not run.\nNo!"}

    def test_code_containing_fences_gets_a_longer_fence(self) -> None:
        assert as_text(code("s = '```'"))[0]["content"] == "````python\ns = '```'\n````"

    def test_an_image_becomes_part_of_the_user_message(self) -> None:
        sent = as_text(code("plot()"), IMAGE, user("Nice"), vision=True)
        assert [part["type"] for part in sent[-1]["content"]] == ["text", "image_url", "text"]


BOTH_MODES = pytest.mark.parametrize("converted", [with_tools, as_text])


@BOTH_MODES
def test_no_message_is_sent_in_the_computer_role(converted: Any) -> None:
    description: Message = {"role": "computer", "type": "image", "format": "description", "content": "A cat."}
    html: Message = {"role": "computer", "type": "code", "format": "html", "content": "<b>"}
    note: Message = {"role": "computer", "type": "message", "content": "ready"}
    for vision in (True, False):
        messages = converted(user("Hi"), code("x"), description, IMAGE, html, note, output("y"), IMAGE, vision=vision)
        assert {message["role"] for message in messages} <= {"user", "assistant", "tool"}
        assert "A cat." in str(messages)
        assert "<b>" not in str(messages)


@BOTH_MODES
def test_messages_not_meant_for_the_model_are_left_out(converted: Any) -> None:
    private: list[Message] = [
        {**output("secret"), "recipient": "user"},
        {"role": "computer", "type": "console", "format": "active_line", "content": 3},
        {"role": "assistant", "type": "reasoning", "content": "secret"},
        {"role": "computer", "type": "confirmation", "format": "execution", "content": "secret"},
        {"role": "server", "type": "error", "content": "secret"},
        said(" \n"),
    ]
    assert converted(user("Hi"), *private) == [{"role": "user", "content": "Hi"}]
    assert "shown" in str(converted(code("x"), {**output("shown"), "recipient": "assistant"}))


@BOTH_MODES
def test_the_output_says_how_a_failed_block_ended(converted: Any) -> None:
    ends: dict[str, dict[str, Any]] = {
        "[exit code 3]": {"exit_code": 3, "ended": "error"},
        "[interrupted]": {"exit_code": None, "ended": "interrupted"},
        "[stopped, it took too long]": {"ended": "timed_out"},
        "[the session died, exit code -9]": {"exit_code": -9, "ended": "died"},
        "[still running in the background]": {"ended": "background"},
    }
    for words, keys in ends.items():
        assert f"oops\n{words}" in str(converted(code("x"), output("oops\n", **keys))[-1]["content"])
        assert words in converted(code("x"), output("", **keys))[-1]["content"]
    assert "[" not in converted(code("x"), output("fine", exit_code=0, ended="done"))[-1]["content"]


@BOTH_MODES
def test_escape_codes_and_overwritten_lines_are_resolved(converted: Any) -> None:
    told_output = converted(code("x"), output("10%\r100%\n\x1b[31mred\x1b[0m"))[-1]["content"]
    assert "100%\nred" in told_output
    assert "10%\r" not in told_output


@BOTH_MODES
def test_models_without_vision_get_a_description_of_images(converted: Any) -> None:
    assert "image was shown" in str(converted(code("plot()"), IMAGE)[-1]["content"])
    asked: list[Message] = []

    def describe(lmc: Message) -> str:
        asked.append(lmc)
        return "a line"

    memory = Memory()
    for _ in range(2):
        words = str(converted(code("plot()"), IMAGE, describe=describe, memory=memory)[-1]["content"])
        assert "It shows: a line" in words
    assert asked == [IMAGE]


@BOTH_MODES
def test_image_files_are_embedded_and_other_files_are_named(converted: Any, tmp_path: Path) -> None:
    picture = tmp_path / "a.jpg"
    picture.write_bytes(b"jpeg!")
    image: Message = {"role": "user", "type": "image", "format": "path", "content": str(picture)}
    memory = Memory()
    first = converted(user("Look"), image, vision=True, memory=memory)
    assert f"data:image/jpeg;base64,{base64.b64encode(b'jpeg!').decode()}" in str(first)
    assert str(picture) in str(first)
    picture.unlink()
    assert converted(user("Look"), image, vision=True, memory=memory) == first
    assert "could not be read" in str(converted(image, vision=True))
    attached: Message = {"role": "user", "type": "file", "format": "path", "content": "/tmp/data.csv"}
    assert converted(attached) == [{"role": "user", "content": "/tmp/data.csv"}]


def test_large_images_are_shrunk() -> None:
    from io import BytesIO

    import numpy
    from PIL import Image

    noise = numpy.random.default_rng(1).integers(0, 255, (1400, 1400, 3), dtype="uint8")
    buffer = BytesIO()
    Image.fromarray(noise).save(buffer, "PNG", compress_level=0)
    content = base64.b64encode(buffer.getvalue()).decode()
    assert len(buffer.getvalue()) > MAX_IMAGE_BYTES
    image: Message = {"role": "user", "type": "image", "format": "base64.png", "content": content}
    shrunk = base64.b64decode(str(image_url(image)).partition(",")[2])
    assert len(shrunk) <= MAX_IMAGE_BYTES
    assert Image.open(BytesIO(shrunk)).width > 1000
    assert image_url(image, shrink=False) == f"data:image/png;base64,{content}"


@BOTH_MODES
def test_an_unknown_message_type_raises_an_error_naming_it(converted: Any) -> None:
    with pytest.raises(UnknownMessageError, match="'dance'"):
        converted({"role": "user", "type": "dance", "content": "x"})


@BOTH_MODES
class TestUserTemplate:
    def test_by_default_only_the_last_message_uses_it(self, converted: Any) -> None:
        history = (user("a"), said("b"), user("c"))
        contents = [message["content"] for message in converted(*history, user_template="Q: {content}")]
        assert contents == ["a", "b", "Q: c"]

    def test_always_use_user_template_applies_it_to_every_message(self, converted: Any) -> None:
        history = (user("a"), said("b"), user("c"))
        forms = {"user_template": "Q: {content}", "always_use_user_template": True}
        assert [message["content"] for message in converted(*history, **forms)] == ["Q: a", "b", "Q: c"]

    def test_a_message_keeps_the_form_it_was_first_sent_in(self, converted: Any) -> None:
        memory, forms = Memory(), {"user_template": "Q: {content}"}
        before = (user("seed"), said("b"), user("c"))
        first = converted(*before, memory=memory, **forms)
        then = converted(*before, said("d"), user("c"), memory=memory, **forms)
        assert then[: len(first)] == first
        assert [message["content"] for message in then] == ["seed", "b", "Q: c", "d", "Q: c"]
        changed = converted(*before, said("d"), user("c"), said("e"), user("f"), memory=memory)
        assert changed[: len(then)] == then

    def test_it_still_applies_when_a_file_follows_the_message(self, converted: Any) -> None:
        file: Message = {"role": "user", "type": "file", "format": "path", "content": "x.csv"}
        assert "Q: a" in str(converted(user("a"), file, user_template="Q: {content}"))


@BOTH_MODES
def test_each_request_is_a_prefix_of_the_next(converted: Any) -> None:
    steps = [
        user("a"),
        said("Sure."),
        code("1"),
        output("1\n"),
        IMAGE,
        code("2"),
        output(""),
        said("So."),
        user("b"),
    ]
    steps += [
        said("Hm."),
        code("3"),
        user("no"),
        code("4"),
        output("x", exit_code=1, ended="error"),
        said("Done."),
    ]
    memory = Memory()
    asked_after = [position for position, message in enumerate(steps, 1) if message["role"] != "assistant"]
    requests = [converted(*steps[:end], memory=memory, vision=True) for end in asked_after]
    whole = converted(*steps, memory=memory, vision=True)
    for request in requests:
        assert [flat(message) for message in request[:-1]] == [flat(message) for message in whole[: len(request) - 1]]
        # Adjacent messages of one role may be joined later: what was sent is still a prefix.
        assert flat(whole[len(request) - 1]).startswith(flat(request[-1]))


def flat(message: dict[str, Any]) -> str:
    content = message["content"]
    texts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    words = "\n".join(str(part.get("text", part.get("image_url"))) for part in texts)
    return f"{message['role']}: {words} {message.get('tool_calls', '')}".rstrip()


@BOTH_MODES
def test_conversion_takes_linear_time(converted: Any) -> None:
    """Measured by the number of lookups in messages."""

    class Counted(dict[str, Any]):
        lookups = 0

        def get(self, *args: Any) -> Any:
            Counted.lookups += 1
            return super().get(*args)

    def lookups(size: int) -> int:
        Counted.lookups = 0
        turn = [user("a"), said("b"), code("c"), output("d")]
        converted(*(Counted(message) for message in turn * size))
        return Counted.lookups

    assert lookups(200) <= 2.1 * lookups(100)


class TestUserBlocks:
    """Blocks that the user ran at the prompt are sent as theirs, without asking the model to comment."""

    BLOCK: tuple[Message, ...] = (
        {"role": "user", "type": "code", "format": "shell", "content": "ls"},
        output("a.txt\n"),
        output("b.txt\n", exit_code=2, ended="error"),
    )

    def test_with_tools(self) -> None:
        sent = with_tools(user("Hi"), code("1"), output("1"), *self.BLOCK, user("Which?"))
        assert sent[3:] == [
            {"role": "user", "content": "I ran this myself:\n```shell\nls\n```"},
            {"role": "user", "content": "Its output:\na.txt"},
            {"role": "user", "content": "Its output:\nb.txt\n[exit code 2]"},
            user_said("Which?"),
        ]

    def test_as_text(self) -> None:
        sent = as_text(user("Hi"), code("1"), output("1"), *self.BLOCK, user("Which?"))
        assert sent[-1] == {
            "role": "user",
            "content": "Output:\n1\nNext?\nI ran this myself:\n```shell\nls\n```\nIts output:\na.txt\n"
            "Its output:\nb.txt\n[exit code 2]\nWhich?",
        }

    def test_a_block_without_output_is_sent_alone(self) -> None:
        block = self.BLOCK[0]
        assert with_tools(block, output(""), user("Well?"))[1:] == [user_said("Well?")]
        assert "Nothing" not in str(as_text(block, output(""), user("Well?")))

    def test_the_models_next_block_gets_its_own_result(self) -> None:
        sent = with_tools(*self.BLOCK, user("Go"), code("2"), output("2"))
        assert sent[-1] == result("2")


def user_said(words: str) -> dict[str, Any]:
    return {"role": "user", "content": words}
