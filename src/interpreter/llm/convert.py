"""From stored messages to the messages of a chat request.

A message goes out in the same form every time, so that what a server has cached of the conversation holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from interpreter.console_text import SPECIAL, ConsoleText
from interpreter.errors import UnknownMessageError
from interpreter.llm.compaction import Cut
from interpreter.llm.digest import digest, shortened
from interpreter.llm.images import image_part, image_url
from interpreter.llm.kept import KeptReplies
from interpreter.llm.left_out import is_image, left_out_part, old_pictures
from interpreter.llm.secrets import Redactor
from interpreter.messages import EPHEMERAL, Message, has_failed

AS_IS = "{content}"
OWN_BLOCK = "I ran this myself:"
OWN_OUTPUT = "Its output:"
_SHOWN_BY_CODE = "This image is part of the output of the last code."
_NEVER_TOLD = EPHEMERAL | {"error", "command"}
_ENDED = {
    "interrupted": "interrupted",
    "timed_out": "stopped, it took too long",
    "background": "still running in the background",
    "died": "the session died",
}


class Forms(NamedTuple):
    """How things are put to the model."""

    user_template: str = AS_IS
    always_use_user_template: bool = False
    output_template: str = AS_IS
    failed_output_template: str = AS_IS
    empty_output_template: str = "No output"
    output_sender: str = "user"
    shrink_images: bool = True
    vision: bool = False
    detail: str = "low"
    pictures: int | None = None
    """So many of those that the computer has shown are sent at most; None is all of them."""
    secrets: Mapping[str, str] | None = None
    """Secrets that are known, by what they are; None lets through whatever code prints."""
    describe: Callable[..., str] | None = None
    max_output: int | None = None
    digests_errors: bool = False


@dataclass
class Memory:
    """The forms in which things went out before, and the replies that go back as they came."""

    templates: dict[tuple[int, str], str] = field(default_factory=dict)
    pictures: dict[tuple[str, str], str | None] = field(default_factory=dict)
    replies: KeptReplies = field(default_factory=KeptReplies)
    redactor: Redactor = field(default_factory=Redactor)

    def templates_sent(self) -> dict[str, str]:
        """The template of each message that went out with one, by its place in the request."""
        if all(template == AS_IS for template in self.templates.values()):
            return {}
        return {str(at): template for (at, _), template in self.templates.items()}

    def take_up(self, templates: Mapping[str, str], messages: Sequence[Message]) -> None:
        """What was written down of an earlier run; the system message stands before the messages."""
        places = {int(at): template for at, template in templates.items() if 0 < int(at) <= len(messages)}
        self.templates = {(at, str(messages[at - 1]["content"])): template for at, template in places.items()}


class Chat(Protocol):
    """What a conversation is put into: with tools, or as plain text."""

    def system(self, text: str) -> None: ...
    def user(self, text: str) -> None: ...
    def say(self, text: str) -> None: ...
    def code(self, language: str, code: str, call: str | None = None) -> None: ...
    def call(self, name: str, arguments: str, call: str | None = None) -> None: ...
    def output(self, text: str, failed: bool = False, call: str | None = None) -> None: ...
    def picture(self, parts: list[dict[str, Any]], shown_by_code: bool) -> None: ...
    def finish(self) -> list[dict[str, Any]]: ...


def convert(
    messages: Sequence[Message], chat: Chat, forms: Forms, memory: Memory, cut: Cut | None = None
) -> list[dict[str, Any]]:
    """The conversation as chat messages, without what is cut; the work grows with its length, no faster."""
    templates = _templates(messages, forms, memory)
    old = old_pictures(messages, forms.pictures)
    memory.redactor.begin()
    by_user = False  # the last block was the user's own
    for position, message in enumerate(messages):
        if cut is not None:
            if position == cut.note_at and cut.note:
                chat.user(cut.note)
            if position in cut.dropped:
                continue
            message = cut.shown(position, message)
        if message.get("recipient", "assistant") != "assistant" or message.get("type") in _NEVER_TOLD:
            continue
        by_user = _is_own_block(message) or (by_user and message.get("role") == "computer")
        if by_user and message.get("type") in ("code", "console"):
            _tell_own_block(message, chat, forms, memory)
        elif position in old and is_image(message):
            chat.picture([{"type": "text", "text": _SHOWN_BY_CODE}, left_out_part()], True)
        else:
            _tell(message, chat, forms, memory, templates.get(position, AS_IS))
    return chat.finish()


def _is_own_block(message: Message) -> bool:
    return message.get("role") == "user" and message.get("type") == "code"


def _tell_own_block(message: Message, chat: Chat, forms: Forms, memory: Memory) -> None:
    """Code that the user ran at the prompt, and its output: nobody waits for what the model makes of it."""
    if _is_own_block(message):
        code = fenced(message.get("format", ""), str(message["content"]))
        chat.user(f"{OWN_BLOCK}\n{_redacted(code, forms, memory)}")
    elif message.get("type") == "code":
        chat.user(_shown(message))
    elif message.get("format") != "active_line" and (text := _console_text(message, forms)):
        chat.user(f"{OWN_OUTPUT}\n{_redacted(text, forms, memory)}")


def _redacted(text: str, forms: Forms, memory: Memory) -> str:
    return text if forms.secrets is None else memory.redactor.redact(text, forms.secrets)


def _templates(messages: Sequence[Message], forms: Forms, memory: Memory) -> dict[int, str]:
    """The template of each user message: the one it went out with before, else the rule of the settings."""
    said = [at for at, m in enumerate(messages) if m.get("role") == "user" and m.get("type") == "message"]
    templates: dict[int, str] = {}
    remembered: dict[tuple[int, str], str] = {}
    for at in said:
        key = (at, str(messages[at]["content"]))
        rule = forms.user_template if forms.always_use_user_template or at == said[-1] else AS_IS
        templates[at] = remembered[key] = memory.templates.get(key, rule)
    memory.templates = remembered
    return templates


def _tell(message: Message, chat: Chat, forms: Forms, memory: Memory, template: str) -> None:
    role, kind, content = message.get("role"), message.get("type"), message.get("content", "")
    match kind:
        case "message" if role == "system":
            chat.system(str(content).strip())
        case "message" if role == "assistant":
            chat.say(str(content).strip())
        case "message" if role == "user":
            chat.user(template.replace("{content}", str(content)).strip())
        case "message":
            chat.output(_redacted(str(content).strip(), forms, memory), has_failed(message))
        case "code":
            _tell_code(message, chat)
        case "console":
            if message.get("format") != "active_line":
                text = _redacted(_console_text(message, forms), forms, memory)
                chat.output(text, has_failed(message), message.get("call"))
        case "tool_call":
            chat.call(message.get("format", ""), str(content), message.get("call"))
        case "image":
            _tell_image(message, chat, forms, memory)
        case "file":
            chat.user(str(content).strip())
        case _:
            raise UnknownMessageError(f"A message of type {kind!r} cannot be told to a model: {_excerpt(message)}")


def _tell_code(message: Message, chat: Chat) -> None:
    if message.get("role") == "assistant":
        chat.code(message.get("format", ""), str(message["content"]), message.get("call"))
    else:
        chat.output(_shown(message))


def _shown(message: Message) -> str:
    return f"[{message.get('format', '')} was shown to the user]"


def fenced(language: str, code: str) -> str:
    """A fenced block, its fence longer than any in the code."""
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{fence}{language}\n{code}\n{fence}"


def _console_text(message: Message, forms: Forms) -> str:
    text = str(message.get("content") or "")
    if SPECIAL.search(text):
        settled = ConsoleText(len(text))
        settled.write(text)
        text = settled.text()
    if forms.digests_errors and has_failed(message):
        text = digest(text)
    if forms.max_output is not None and len(text) > forms.max_output:
        text = shortened(text, forms.max_output)
    return "\n".join(filter(None, (text.strip(), _how_it_ended(message))))


def _how_it_ended(message: Message) -> str:
    """One line on a block that did not end well; none on the others."""
    notes = [_ENDED[message["ended"]]] if message.get("ended") in _ENDED else []
    if message.get("exit_code"):
        notes.append(f"exit code {message['exit_code']}")
    return f"[{', '.join(notes)}]" if notes else ""


def _tell_image(message: Message, chat: Chat, forms: Forms, memory: Memory) -> None:
    shown_by_code = message.get("role") != "user"
    words = _words_for(message, forms, memory, shown_by_code)
    if words is not None:
        chat.output(words) if shown_by_code else chat.user(words)
        return
    url = _remembered(message, memory, lambda: image_url(message, forms.shrink_images))
    if url is None:
        chat.user(f"[The image {message['content']} could not be read.]")
        return
    about = f"The image at {message['content']}:" if message.get("format") == "path" else None
    about = _SHOWN_BY_CODE if shown_by_code else about
    parts = [{"type": "text", "text": about}] if about else []
    chat.picture([*parts, image_part(url, forms.detail)], shown_by_code)


def _words_for(message: Message, forms: Forms, memory: Memory, shown_by_code: bool) -> str | None:
    """What is said in place of an image; None if the image itself is sent."""
    if message.get("format") == "description":
        return str(message["content"]).strip()
    if forms.vision:
        return None
    describe = forms.describe
    if describe is not None:
        description = _remembered(message, memory, lambda: str(describe(lmc=message)))
        return f"[An image. It shows: {description}]"
    return "[An image was shown to the user.]" if shown_by_code else "[The user added an image, which you cannot see.]"


def _remembered(message: Message, memory: Memory, make: Callable[[], str | None]) -> str | None:
    key = (message.get("format", ""), str(message["content"]))
    if key not in memory.pictures:
        memory.pictures[key] = make()
    return memory.pictures[key]


def _excerpt(message: Message) -> str:
    return f"{message!r:.80}"
