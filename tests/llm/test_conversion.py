"""How a conversation is put to a model, with tools and as plain text."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from interpreter.errors import UnknownMessageError
from interpreter.llm.request import (
    LARGEST_IMAGE,
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
    told = Forms(output_template="Output:\n{content}\nNext?", empty_output_template="Nothing. Next?", **forms)
    return convert([SYSTEM, *messages], TextChat(told), told, memory or Memory())[1:]


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

    def test_no_output_is_said(self) -> None:
        assert with_tools(code("pass"), output(""))[-1] == result("No output")

    def test_words_before_a_call_go_with_it(self) -> None:
        assert with_tools(said("Look: "), code("1"), output("1"))[0] == calls(
            '{"language": "python", "code": "1"}', content="Look:"
        )

    def test_blocks_that_ran_one_after_the_other(self) -> None:
        told = with_tools(code("1"), output("1"), said("And"), code("2", "r"), output("2"))
        assert told == [
            calls('{"language": "python", "code": "1"}'),
            result("1"),
            calls('{"language": "r", "code": "2"}', first=2, content="And"),
            result("2", 2),
        ]

    def test_blocks_proposed_together_get_their_outputs_in_order(self) -> None:
        told = with_tools(code("1"), code("2"), output("one"), output("two"))
        assert [message["content"] for message in told] == ["", "one", "two"]
        assert len(told[0]["tool_calls"]) == 2

    def test_code_that_was_not_run_has_a_result_that_says_so(self) -> None:
        told = with_tools(code("rm x"), user("No!"))
        assert told[1:] == [result("This code was not run."), {"role": "user", "content": "No!"}]
        assert with_tools(code("rm x"))[-1] == result("This code was not run.")

    def test_output_of_no_call_is_told_by_the_user(self) -> None:
        told = with_tools(user("Hi"), output("late\n"))
        assert told[-1] == {"role": "user", "content": "Output on this computer:\nlate"}

    def test_an_image_follows_the_results(self) -> None:
        told = with_tools(code("plot()"), IMAGE, output("done"), vision=True)
        assert told[1] == result("The output is the image that follows.\ndone")
        assert told[2]["role"] == "user"
        assert told[2]["content"][1] == {
            "type": "image_url",
            "image_url": {"url": "data:image/png;base64,iVBO", "detail": "low"},
        }

    def test_code_outside_ascii_stays_readable(self) -> None:
        assert with_tools(code("print('é')"))[0] == calls("""{"language": "python", "code": "print('é')"}""")


class TestAsText:
    def test_a_block_is_fenced_and_its_output_told_with_the_template(self) -> None:
        assert as_text(user("Hi"), said("Sure."), code("print(1)"), output("1\n"), said("One.")) == [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Sure.\n```python\nprint(1)\n```"},
            {"role": "user", "content": "Output:\n1\nNext?"},
            {"role": "assistant", "content": "One."},
        ]

    def test_no_output_has_a_template_of_its_own(self) -> None:
        assert as_text(code("pass"), output(""))[-1]["content"] == "Nothing. Next?"

    def test_several_outputs_of_a_block_are_one(self) -> None:
        assert as_text(code("x"), output("1"), output("2"))[-1]["content"] == "Output:\n1\n2\nNext?"

    def test_output_in_the_assistants_name(self) -> None:
        told = as_text(code("1"), output("1"), output_sender="assistant")
        assert told == [{"role": "assistant", "content": "```python\n1\n```\n```output\n1\n```"}]

    def test_code_that_was_not_run_is_said_so(self) -> None:
        told = as_text(code("rm x"), user("No!"))
        assert told[-1] == {"role": "user", "content": "The code above was not run.\nNo!"}

    def test_code_with_fences_in_it_has_a_longer_fence(self) -> None:
        assert as_text(code("s = '```'"))[0]["content"] == "````python\ns = '```'\n````"

    def test_an_image_is_a_part_of_what_the_user_says(self) -> None:
        told = as_text(code("plot()"), IMAGE, user("Nice"), vision=True)
        assert [part["type"] for part in told[-1]["content"]] == ["text", "image_url", "text"]


BOTH = pytest.mark.parametrize("told", [with_tools, as_text])


@BOTH
def test_the_computer_never_speaks_in_its_own_role(told: Any) -> None:
    description: Message = {"role": "computer", "type": "image", "format": "description", "content": "A cat."}
    html: Message = {"role": "computer", "type": "code", "format": "html", "content": "<b>"}
    note: Message = {"role": "computer", "type": "message", "content": "ready"}
    for vision in (True, False):
        messages = told(user("Hi"), code("x"), description, IMAGE, html, note, output("y"), IMAGE, vision=vision)
        assert {message["role"] for message in messages} <= {"user", "assistant", "tool"}
        assert "A cat." in str(messages)
        assert "<b>" not in str(messages)


@BOTH
def test_what_is_for_others_is_left_out(told: Any) -> None:
    private: list[Message] = [
        {**output("secret"), "recipient": "user"},
        {"role": "computer", "type": "console", "format": "active_line", "content": 3},
        {"role": "assistant", "type": "reasoning", "content": "secret"},
        {"role": "computer", "type": "confirmation", "format": "execution", "content": "secret"},
        {"role": "server", "type": "error", "content": "secret"},
        said(" \n"),
    ]
    assert told(user("Hi"), *private) == [{"role": "user", "content": "Hi"}]
    assert "shown" in str(told(code("x"), {**output("shown"), "recipient": "assistant"}))


@BOTH
def test_a_block_that_did_not_end_well_is_told_how(told: Any) -> None:
    ends: dict[str, dict[str, Any]] = {
        "[exit code 3]": {"exit_code": 3, "ended": "error"},
        "[interrupted]": {"exit_code": None, "ended": "interrupted"},
        "[stopped, it took too long]": {"ended": "timed_out"},
        "[the session died, exit code -9]": {"exit_code": -9, "ended": "died"},
        "[still running in the background]": {"ended": "background"},
    }
    for words, keys in ends.items():
        assert f"oops\n{words}" in str(told(code("x"), output("oops\n", **keys))[-1]["content"])
        assert words in told(code("x"), output("", **keys))[-1]["content"]
    assert "[" not in told(code("x"), output("fine", exit_code=0, ended="done"))[-1]["content"]


@BOTH
def test_escapes_and_overwritten_lines_are_settled(told: Any) -> None:
    told_output = told(code("x"), output("10%\r100%\n\x1b[31mred\x1b[0m"))[-1]["content"]
    assert "100%\nred" in told_output
    assert "10%\r" not in told_output


@BOTH
def test_a_model_that_cannot_see_is_told_that_there_was_an_image(told: Any) -> None:
    assert "image was shown" in str(told(code("plot()"), IMAGE)[-1]["content"])
    asked: list[Message] = []

    def describe(lmc: Message) -> str:
        asked.append(lmc)
        return "a line"

    memory = Memory()
    for _ in range(2):
        words = str(told(code("plot()"), IMAGE, describe=describe, memory=memory)[-1]["content"])
        assert "It shows: a line" in words
    assert asked == [IMAGE]


@BOTH
def test_an_image_in_a_file_and_a_file(told: Any, tmp_path: Path) -> None:
    picture = tmp_path / "a.jpg"
    picture.write_bytes(b"jpeg!")
    image: Message = {"role": "user", "type": "image", "format": "path", "content": str(picture)}
    memory = Memory()
    first = told(user("Look"), image, vision=True, memory=memory)
    assert f"data:image/jpeg;base64,{base64.b64encode(b'jpeg!').decode()}" in str(first)
    assert str(picture) in str(first)
    picture.unlink()
    assert told(user("Look"), image, vision=True, memory=memory) == first
    assert "could not be read" in str(told(image, vision=True))
    attached: Message = {"role": "user", "type": "file", "format": "path", "content": "/tmp/data.csv"}
    assert told(attached) == [{"role": "user", "content": "/tmp/data.csv"}]


def test_a_large_image_is_made_smaller() -> None:
    from io import BytesIO

    import numpy
    from PIL import Image

    noise = numpy.random.default_rng(1).integers(0, 255, (1400, 1400, 3), dtype="uint8")
    buffer = BytesIO()
    Image.fromarray(noise).save(buffer, "PNG", compress_level=0)
    content = base64.b64encode(buffer.getvalue()).decode()
    assert len(buffer.getvalue()) > LARGEST_IMAGE
    image: Message = {"role": "user", "type": "image", "format": "base64.png", "content": content}
    shrunk = base64.b64decode(str(image_url(image)).partition(",")[2])
    assert len(shrunk) <= LARGEST_IMAGE
    assert Image.open(BytesIO(shrunk)).width > 1000
    assert image_url(image, shrink=False) == f"data:image/png;base64,{content}"


@BOTH
def test_a_message_of_an_unknown_type_is_named(told: Any) -> None:
    with pytest.raises(UnknownMessageError, match="'dance'"):
        told({"role": "user", "type": "dance", "content": "x"})


@BOTH
class TestUserTemplate:
    def test_only_the_last_message_has_it(self, told: Any) -> None:
        history = (user("a"), said("b"), user("c"))
        contents = [message["content"] for message in told(*history, user_template="Q: {content}")]
        assert contents == ["a", "b", "Q: c"]

    def test_or_all_have_it(self, told: Any) -> None:
        history = (user("a"), said("b"), user("c"))
        forms = {"user_template": "Q: {content}", "always_use_user_template": True}
        assert [message["content"] for message in told(*history, **forms)] == ["Q: a", "b", "Q: c"]

    def test_a_message_keeps_the_form_in_which_it_first_went_out(self, told: Any) -> None:
        memory, forms = Memory(), {"user_template": "Q: {content}"}
        before = (user("seed"), said("b"), user("c"))
        first = told(*before, memory=memory, **forms)
        then = told(*before, said("d"), user("c"), memory=memory, **forms)
        assert then[: len(first)] == first
        assert [message["content"] for message in then] == ["seed", "b", "Q: c", "d", "Q: c"]
        changed = told(*before, said("d"), user("c"), said("e"), user("f"), memory=memory)
        assert changed[: len(then)] == then

    def test_an_image_behind_the_words_does_not_take_it_away(self, told: Any) -> None:
        file: Message = {"role": "user", "type": "file", "format": "path", "content": "x.csv"}
        assert "Q: a" in str(told(user("a"), file, user_template="Q: {content}"))


@BOTH
def test_what_went_out_is_the_beginning_of_what_goes_out_next(told: Any) -> None:
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
    requests = [told(*steps[:end], memory=memory, vision=True) for end in asked_after]
    whole = told(*steps, memory=memory, vision=True)
    for request in requests:
        assert [flat(message) for message in request[:-1]] == [flat(message) for message in whole[: len(request) - 1]]
        # Neighbours of one role may be joined later: what was sent is still the beginning.
        assert flat(whole[len(request) - 1]).startswith(flat(request[-1]))


def flat(message: dict[str, Any]) -> str:
    content = message["content"]
    texts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    words = "\n".join(str(part.get("text", part.get("image_url"))) for part in texts)
    return f"{message['role']}: {words} {message.get('tool_calls', '')}".rstrip()


@BOTH
def test_the_work_grows_with_the_length_of_the_conversation_and_no_faster(told: Any) -> None:
    """Counted as how often messages are looked at."""

    class Counted(dict[str, Any]):
        looks = 0

        def get(self, *args: Any) -> Any:
            Counted.looks += 1
            return super().get(*args)

    def looks(size: int) -> int:
        Counted.looks = 0
        turn = [user("a"), said("b"), code("c"), output("d")]
        told(*(Counted(message) for message in turn * size))
        return Counted.looks

    assert looks(200) <= 2.1 * looks(100)


class TestBlocksOfTheUsersOwn:
    """What the user ran at the prompt is told as theirs, and nobody asks the model what it means."""

    BLOCK: tuple[Message, ...] = (
        {"role": "user", "type": "code", "format": "shell", "content": "ls"},
        output("a.txt\n"),
        output("b.txt\n", exit_code=2, ended="error"),
    )

    def test_with_tools(self) -> None:
        told = with_tools(user("Hi"), code("1"), output("1"), *self.BLOCK, user("Which?"))
        assert told[3:] == [
            {"role": "user", "content": "I ran this myself:\n```shell\nls\n```"},
            {"role": "user", "content": "Its output:\na.txt"},
            {"role": "user", "content": "Its output:\nb.txt\n[exit code 2]"},
            user_said("Which?"),
        ]

    def test_as_text(self) -> None:
        told = as_text(user("Hi"), code("1"), output("1"), *self.BLOCK, user("Which?"))
        assert told[-1] == {
            "role": "user",
            "content": "Output:\n1\nNext?\nI ran this myself:\n```shell\nls\n```\nIts output:\na.txt\n"
            "Its output:\nb.txt\n[exit code 2]\nWhich?",
        }

    def test_a_block_without_output(self) -> None:
        block = self.BLOCK[0]
        assert with_tools(block, output(""), user("Well?"))[1:] == [user_said("Well?")]
        assert "Nothing" not in str(as_text(block, output(""), user("Well?")))

    def test_the_models_next_block_is_its_own_again(self) -> None:
        told = with_tools(*self.BLOCK, user("Go"), code("2"), output("2"))
        assert told[-1] == result("2")


def user_said(words: str) -> dict[str, Any]:
    return {"role": "user", "content": words}
