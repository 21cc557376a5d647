"""Images as parts of a chat message."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from interpreter.config.setting import sources
from interpreter.console_text import SPECIAL, ConsoleText
from interpreter.errors import UnknownMessageError
from interpreter.llm.computer_use import computer_tool, kind_of
from interpreter.llm.context import (
    Cut,
    is_image,
    left_out_part,
    old_pictures,
)
from interpreter.llm.file_preview import is_for_shell, names_table, peek
from interpreter.llm.kept_replies import KeptReplies
from interpreter.llm.model_profile import AS_IS, Forms
from interpreter.llm.providers import calls_tools, sees_images
from interpreter.llm.secrets import Redactor, secret_values
from interpreter.llm.text_mode import TextChat, fenced
from interpreter.llm.tool_mode import ToolChat
from interpreter.messages import EPHEMERAL, Message, has_failed

if TYPE_CHECKING:
    from interpreter.llm.llm import Llm


LARGEST = 5 * 1024 * 1024
_MIME = {"jpg": "jpeg", "": "png"}


def image_url(message: Message, shrink: bool = True) -> str | None:
    """The image as a data URI; None if it cannot be read."""
    if message.get("format") == "path":
        found = _from_file(str(message["content"]))
        if found is None:
            return None
        kind, data = found
    else:
        kind, data = str(message.get("format", "")).partition(".")[2], str(message["content"])
    if shrink and len(data) * 3 // 4 > LARGEST:
        kind, data = _shrunk(kind, data)
    return f"data:image/{_MIME.get(kind, kind)};base64,{data}"


def image_part(url: str, detail: str = "low") -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, "detail": detail}}


def _from_file(path: str) -> tuple[str, str] | None:
    file = Path(path).expanduser()
    try:
        content = file.read_bytes()
    except OSError:
        return None
    return file.suffix.lstrip(".").lower(), base64.b64encode(content).decode()


def _shrunk(kind: str, data: str) -> tuple[str, str]:
    """The image scaled until it fits; as it is where Pillow is missing or cannot read it."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        return kind, data
    from io import BytesIO

    try:
        image: Image.Image = Image.open(BytesIO(base64.b64decode(data)))
    except (UnidentifiedImageError, ValueError):
        return kind, data
    saved_as = "JPEG" if kind in ("jpg", "jpeg") else "PNG"
    while len(data) * 3 // 4 > LARGEST:
        scale = min(0.9, (LARGEST / (len(data) * 3 // 4)) ** 0.5)
        image = image.resize((max(1, int(image.width * scale)), max(1, int(image.height * scale))))
        buffer = BytesIO()
        image.save(buffer, saved_as, compress_level=1)
        data = base64.b64encode(buffer.getvalue()).decode()
    return saved_as.lower(), data


_TRACEBACK = "Traceback (most recent call last)"
_FRAME = re.compile(r'^\s*(?:File|Cell) ["<]?(?P<file>[^"\n,]*)')
_LONGEST = 300  # of a line


def digest(text: str) -> str:
    """Each traceback without the frames of libraries; the rest as it is."""
    before, found, trace = text.rpartition(_TRACEBACK)
    if not found:
        return text
    # IPython writes a line of dashes and the error's name before it.
    said = before.rstrip(" ").rpartition("-" * 20)[0].rstrip("-\n") if before.endswith(" ") else before
    return f"{said}\n{_without_libraries(trace.lstrip(':- ').splitlines())}".strip()


def _without_libraries(lines: list[str]) -> str:
    kept: list[str] = []
    is_kept = True
    for line in lines:
        frame = _FRAME.match(line)
        if frame:
            is_kept = not _is_library(frame["file"])
        elif line[:1].strip() and not line.startswith("-"):
            is_kept = True  # what the error says stands at the margin
        if is_kept and (line.strip() or (kept and kept[-1].strip())):
            kept.append(line[:_LONGEST])
    return "\n".join(kept)


def _is_library(file: str) -> bool:
    return "site-packages" in file or "/lib/python" in file or "\\lib\\" in file.lower() or file.startswith("frozen")


def shortened(text: str, most: int) -> str:
    """Beginning and end of a text, with a word on what is missing."""
    head, tail = most // 3, most - most // 3
    return f"{text[:head]}\n[... {len(text) - most:,} characters left out ...]\n{text[-tail:]}"


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


WHERE = ("api_base", "api_key", "api_version")


def make_request(llm: Llm, messages: Sequence[Message], cut: Cut | None = None) -> dict[str, Any]:
    """The request: what is not set is not in it."""
    assert messages[0].get("role") == "system", "the first message must be the system message"
    has_tools = asks_with_tools(llm)
    params: dict[str, Any] = {"model": llm.model, "messages": _chat(llm, messages, has_tools, cut), "stream": True}
    if has_tools:
        params["tools"] = [*(tool.as_function() for tool in llm.interpreter.tools), *_computer_tool(llm)]
    for name in ("max_tokens", "temperature", *WHERE):
        if getattr(llm, name) is not None:
            params[name] = getattr(llm, name)
    if not has_tools:
        _limit(llm, params)
    return params


def _computer_tool(llm: Llm) -> list[dict[str, Any]]:
    """In OS mode, the tool for the screen that the model is made for; others act through code alone."""
    screen = llm.interpreter.screen
    place = llm.place if screen is not None else None
    if screen is None or place is None or kind_of(place.wire, place.model) is None:
        return []
    return [computer_tool(screen)]


def asks_with_tools(llm: Llm) -> bool:
    """Whether the model gets the tool; else it writes its code in fences."""
    if llm.supports_functions is None and llm.tries_tools:
        return True
    if llm.supports_functions is None and not llm.profile.calls_tools:
        return False
    return _decided(llm, llm.supports_functions, calls_tools)


def can_see(llm: Llm) -> bool:
    """Whether images go to the model."""
    return _decided(llm, llm.supports_vision, sees_images)


def _decided(llm: Llm, setting: bool | None, by_name: Callable[[str, str | None], bool]) -> bool:
    return setting if setting is not None else by_name(llm.model, llm.api_base)


def _limit(llm: Llm, params: dict[str, Any]) -> None:
    profile = llm.profile
    if profile.max_tokens is not None and llm.max_tokens is None:
        params["max_tokens"] = profile.max_tokens
    if profile.stop:
        params["stop"] = list(profile.stop)


def _chat(llm: Llm, messages: Sequence[Message], has_tools: bool, cut: Cut | None) -> list[dict[str, Any]]:
    forms = _forms(llm, messages, has_tools)
    if has_tools:
        return convert(messages, ToolChat(), forms, llm.memory, cut)
    instructions = llm.execution_instructions
    if _is_default(llm, "llm.execution_instructions") and llm.profile.is_instructed_beside:
        instructions = ""
    if added := "\n\n".join(filter(None, [instructions or "", llm.interpreter.tools.as_text()])):
        system = messages[0]
        messages = [{**system, "content": f"{system['content']}\n\n{added}".strip()}, *messages[1:]]
    return convert(messages, TextChat(forms), forms, llm.memory, cut)


def _forms(llm: Llm, messages: Sequence[Message], has_tools: bool) -> Forms:
    interpreter, profile = llm.interpreter, llm.profile
    forms = Forms(
        user_template=interpreter.user_message_template,
        always_use_user_template=interpreter.always_apply_user_message_template,
        output_template=interpreter.code_output_template,
        failed_output_template=interpreter.code_output_template,
        empty_output_template=interpreter.empty_code_output_template,
        output_sender=interpreter.code_output_sender,
        shrink_images=interpreter.shrink_images,
        vision=can_see(llm),
        detail="high" if interpreter.os else "low",  # of a screen, small text matters
        pictures=interpreter.os_max_pictures if interpreter.os and can_see(llm) else None,
        secrets=known_secrets(llm) if interpreter.redact_secrets else None,
        describe=llm.vision_renderer,
        max_output=profile.max_output,
        digests_errors=profile.digests_errors,
    )
    return forms if has_tools else _of_the_profile(llm, forms, messages)


def known_secrets(llm: Llm) -> dict[str, str]:
    """What nobody else should see when code prints it."""
    known = llm.interpreter.computer.context.environment()
    return secret_values(known, [("API key", llm.api_key)])


def _of_the_profile(llm: Llm, forms: Forms, messages: Sequence[Message]) -> Forms:
    """The texts of the profile in the place of those that nobody has set."""
    profile = llm.profile
    given = sources(llm.interpreter)

    def chosen(name: str, text: str | None, own: str) -> str:
        return text if text is not None and given[name] == "default" else own

    user_template = profile.user_template
    if "{files}" in user_template:
        words, folder = _last_words(messages), llm.interpreter.computer.context.cwd
        seen = peek(words, folder)
        user_template = user_template.replace("{languages}", _languages(llm, words, folder))
        if forms.secrets is not None:
            seen = llm.memory.redactor.redact(seen, forms.secrets)
        user_template = user_template.replace("{files}", seen).replace("\n\n\n\n", "\n\n")
    output = chosen("code_output_template", profile.output_template, forms.output_template)
    return forms._replace(
        user_template=chosen("user_message_template", user_template, forms.user_template),
        output_template=output,
        empty_output_template=chosen(
            "empty_code_output_template", profile.empty_output_template, forms.empty_output_template
        ),
        failed_output_template=chosen("code_output_template", profile.failed_output_template, output),
    )


def _languages(llm: Llm, words: str, folder: str) -> str:
    """A small model that may choose takes the shell for sums and tables, or reads tables by hand, and gets it wrong."""
    if is_for_shell(words, folder):
        return "Python or bash"
    has_pandas = names_table(words, folder) and llm.interpreter.computer.has_python_package("pandas")
    return "Python (pandas)" if has_pandas else "Python"


def _last_words(messages: Sequence[Message]) -> str:
    said = (m for m in reversed(messages) if m.get("role") == "user" and m.get("type") == "message")
    return next((str(message.get("content", "")) for message in said), "")


def _is_default(llm: Llm, name: str) -> bool:
    return sources(llm)[name] == "default"
