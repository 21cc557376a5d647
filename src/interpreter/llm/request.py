"""The request for a conversation: chat messages, tools and parameters, worded by the settings and the model profile.

A message is sent in the same form every time, so that the server's prompt cache stays valid.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interpreter.config.setting import sources
from interpreter.config.settings import InterpreterSettings, LlmSettings
from interpreter.console_text import SPECIAL, ConsoleText
from interpreter.errors import UnknownMessageError
from interpreter.host import files
from interpreter.llm.context import (
    LEFT_OUT,
    LEFT_OUT_PART,
    Cut,
    Runtimes,
    is_image,
    old_lists,
    old_pictures,
    without_list,
)
from interpreter.llm.file_preview import languages_for, peek
from interpreter.llm.http import Replies
from interpreter.llm.model_profile import AS_IS, Forms, ModelProfile
from interpreter.llm.native_tools import NativeTool
from interpreter.llm.secrets import Redactor
from interpreter.llm.text_mode import TextChat, fenced
from interpreter.llm.tool_mode import ToolChat
from interpreter.messages import EPHEMERAL, Message, has_failed
from interpreter.tools import Toolbox

ADDRESS = ("api_base", "api_key", "api_version")  # the settings that say where a model is
MAX_IMAGE_BYTES = 5 * 1024 * 1024
_SHOWN = "[{} was shown to the user]"
_SHOWN_BY_CODE = "This image is part of the output of the last code."
_NEVER_SENT = EPHEMERAL | {"error", "command"}
_ENDED = {
    "interrupted": "interrupted",
    "timed_out": "stopped, it took too long",
    "background": "still running in the background",
    "died": "the session died",
}


@dataclass
class Memory:
    """The forms in which messages went out before, and the replies that go back as they came."""

    templates: dict[tuple[int, str], str] = field(default_factory=dict)
    pictures: dict[tuple[str, str], str | None] = field(default_factory=dict)
    replies: Replies = field(default_factory=dict)
    redactor: Redactor = field(default_factory=Redactor)


# -- the request -------------------------------------------------------------------------------------------------


def build_request(
    messages: Sequence[Message],
    llm: LlmSettings,
    agent: InterpreterSettings,
    tools: Toolbox,
    runtimes: Runtimes,
    profile: ModelProfile,
    memory: Memory,
    *,
    has_tools: bool,  # otherwise the model writes its code in fences
    vision: bool,
    native_tool: NativeTool | None,  # the provider's own
    secrets: Mapping[str, str] | None,  # to redact; None redacts nothing
    cut: Cut | None = None,
) -> dict[str, Any]:
    """Build the request for a conversation. Parameters that are not set are not in it.

    The messages go out in the user's texts, or those of the profile where the user has set none.
    """
    assert messages[0].get("role") == "system", "the first message must be the system message"
    given = sources(agent)

    def worded(name: str, of_profile: str | None) -> str:
        is_free = not has_tools and given[name] == "default"
        return of_profile if is_free and of_profile is not None else getattr(agent, name)

    template = profile.user_template
    if not has_tools and "{files}" in template:
        template = _with_preview(template, messages, runtimes, memory, secrets)
    output = worded("code_output_template", profile.output_template)
    forms = Forms(
        user_template=worded("user_message_template", template),
        always_use_user_template=agent.always_apply_user_message_template,
        output_template=output,
        failed_output_template=worded("code_output_template", profile.failed_output_template or output),
        empty_output_template=worded("empty_code_output_template", profile.empty_output_template),
        output_sender=agent.code_output_sender,
        shrink_images=agent.shrink_images,
        vision=vision,
        detail="high" if agent.os else "low",  # small text on a screen matters
        pictures=agent.os_max_pictures if agent.os and vision else None,
        lists=agent.os_max_pictures if agent.os else None,
        secrets=secrets,
        describe=llm.vision_renderer,
        max_output=profile.max_output,
        digests_errors=profile.digests_errors,
    )
    if has_tools:
        functions = [tool.as_function() for tool in tools]
        functions += [native_tool] if native_tool is not None else []
        return {**request_params(llm, convert(messages, ToolChat(), forms, memory, cut)), "tools": functions}
    instructions = llm.execution_instructions
    if sources(llm)["llm.execution_instructions"] == "default" and profile.is_instructed_beside:
        instructions = ""
    if added := "\n\n".join(filter(None, [instructions or "", tools.as_text()])):
        system = messages[0]
        messages = [{**system, "content": f"{system['content']}\n\n{added}".strip()}, *messages[1:]]
    params = request_params(llm, convert(messages, TextChat(forms), forms, memory, cut))
    if profile.max_tokens is not None and llm.max_tokens is None:
        params["max_tokens"] = profile.max_tokens
    if profile.stop:
        params["stop"] = list(profile.stop)
    return params


def _with_preview(
    template: str,
    messages: Sequence[Message],
    runtimes: Runtimes,
    memory: Memory,
    secrets: Mapping[str, str] | None,
) -> str:
    """Fill in a profile's template, with a preview of the files that the last request names."""
    requests = (m for m in reversed(messages) if m.get("role") == "user" and m.get("type") == "message")
    request = next((str(message.get("content", "")) for message in requests), "")
    folder = runtimes.context.cwd
    files = "" if runtimes.context.elsewhere else peek(request, folder)
    if secrets is not None:
        files = memory.redactor.redact(files, secrets)
    languages = languages_for(request, folder, runtimes.has_python_package)
    return template.replace("{languages}", languages).replace("{files}", files).replace("\n\n\n\n", "\n\n")


def request_params(llm: LlmSettings, chat: list[dict[str, Any]]) -> dict[str, Any]:
    settings = {name: getattr(llm, name) for name in ("max_tokens", "temperature", *ADDRESS)}
    given = {name: value for name, value in settings.items() if value is not None}
    return {"model": llm.model, "messages": chat, "stream": True, **given}


# -- the messages ------------------------------------------------------------------------------------------------


Chat = ToolChat | TextChat


def convert(
    messages: Sequence[Message], chat: Chat, forms: Forms, memory: Memory, cut: Cut | None = None
) -> list[dict[str, Any]]:
    """Convert the conversation to chat messages, without what is cut, in time linear to its length."""
    request_positions = [at for at, m in enumerate(messages) if m.get("role") == "user" and m.get("type") == "message"]
    templates: dict[tuple[int, str], str] = {}
    for at in request_positions:  # the template that it went out with before, or the one of the settings
        key = (at, str(messages[at]["content"]))
        rule = forms.user_template if forms.always_use_user_template or at == request_positions[-1] else AS_IS
        templates[key] = memory.templates.get(key, rule)
    memory.templates = templates
    old = old_pictures(messages, forms.pictures)
    lists = old_lists(messages, forms.lists, old)
    memory.redactor.begin()
    by_user = False  # the last block was the user's own
    for position, message in enumerate(messages):
        if cut is not None:
            if position == cut.note_at and cut.note:
                chat.user(cut.note)
            if position in cut.dropped:
                continue
            if position in cut.blind:
                message = {**message, "format": "description", "content": LEFT_OUT}
        if message.get("recipient", "assistant") != "assistant" or message.get("type") in _NEVER_SENT:
            continue
        if position in lists:
            message = {**message, "content": without_list(str(message["content"]))}
        is_own_block = message.get("role") == "user" and message.get("type") == "code"
        by_user = is_own_block or (by_user and message.get("role") == "computer")
        if by_user and message.get("type") in ("code", "console"):
            _add_own_block(message, chat, forms, memory)
        elif position in old and is_image(message):
            chat.picture([{"type": "text", "text": _SHOWN_BY_CODE}, dict(LEFT_OUT_PART)], True)
        else:
            _add(message, chat, forms, memory, templates.get((position, str(message.get("content"))), AS_IS))
    return chat.finish()


def _add_own_block(message: Message, chat: Chat, forms: Forms, memory: Memory) -> None:
    """Add code that the user ran at the prompt, or its output."""
    if message.get("role") == "user":
        code = fenced(message.get("format", ""), str(message["content"]))
        chat.user(f"I ran this myself:\n{_without_secrets(code, forms, memory)}")
    elif message.get("type") == "code":
        chat.user(_SHOWN.format(message.get("format", "")))
    elif message.get("format") != "active_line" and (text := _console_text(message, forms)):
        chat.user(f"Its output:\n{_without_secrets(text, forms, memory)}")


def _add(message: Message, chat: Chat, forms: Forms, memory: Memory, template: str) -> None:
    role, kind, content = message.get("role"), message.get("type"), message.get("content", "")
    match kind:
        case "message" if role == "system":
            chat.system(str(content).strip())
        case "message" if role == "assistant":
            chat.say(str(content).strip())
        case "message" if role == "user":
            chat.user(template.replace("{content}", str(content)).strip())
        case "message":
            chat.output(_without_secrets(str(content).strip(), forms, memory), has_failed(message))
        case "code" if role == "assistant":
            chat.code(message.get("format", ""), str(content), message.get("call"))
        case "code":
            chat.output(_SHOWN.format(message.get("format", "")))
        case "console":
            if message.get("format") != "active_line":
                text = _without_secrets(_console_text(message, forms), forms, memory)
                chat.output(text, has_failed(message), message.get("call"))
        case "tool_call":
            chat.call(message.get("format", ""), str(content), message.get("call"))
        case "image":
            _add_image(message, chat, forms, memory)
        case "file":
            chat.user(str(content).strip())
        case _:
            raise UnknownMessageError(f"A message of type {kind!r} can't be sent to a model: {message!r:.80}")


def _without_secrets(text: str, forms: Forms, memory: Memory) -> str:
    return text if forms.secrets is None else memory.redactor.redact(text, forms.secrets)


def _console_text(message: Message, forms: Forms) -> str:
    """Return the output of a block, and one line if it did not end well."""
    text = str(message.get("content") or "")
    if SPECIAL.search(text):
        settled = ConsoleText(len(text))
        settled.write(text)
        text = settled.text()
    if forms.digests_errors and has_failed(message) and message.get("ended") != "unfinished":
        text = digest(text)
    if forms.max_output is not None and len(text) > forms.max_output:
        text = shortened(text, forms.max_output)
    notes = [_ENDED[message["ended"]]] if message.get("ended") in _ENDED else []
    if message.get("exit_code"):
        notes.append(f"exit code {message['exit_code']}")
    ending = f"[{', '.join(notes)}]" if notes else ""
    return "\n".join(filter(None, (text.strip(), ending, message.get("note"))))


# -- images ------------------------------------------------------------------------------------------------------


def _add_image(message: Message, chat: Chat, forms: Forms, memory: Memory) -> None:
    shown_by_code = message.get("role") != "user"
    substitute = None
    if message.get("format") == "description":
        substitute = str(message["content"]).strip()
    elif not forms.vision and (describe := forms.describe) is not None:
        description = _remembered(message, memory, lambda: str(describe(lmc=message)))
        substitute = f"[An image. It shows: {description}]"
    elif not forms.vision and shown_by_code:
        substitute = "[An image was shown to the user.]"
    elif not forms.vision:
        substitute = "[The user added an image, which you cannot see.]"
    if substitute is not None:
        chat.output(substitute) if shown_by_code else chat.user(substitute)
        return
    url = _remembered(message, memory, lambda: image_url(message, forms.shrink_images))
    if url is None:
        chat.user(f"[The image {message['content']} could not be read.]")
        return
    about = f"The image at {message['content']}:" if message.get("format") == "path" else None
    about = _SHOWN_BY_CODE if shown_by_code else about
    parts: list[dict[str, Any]] = [{"type": "text", "text": about}] if about else []
    parts.append({"type": "image_url", "image_url": {"url": url, "detail": forms.detail}})
    chat.picture(parts, shown_by_code)


def _remembered(message: Message, memory: Memory, make: Callable[[], str | None]) -> str | None:
    key = (message.get("format", ""), str(message["content"]))
    if key not in memory.pictures:
        memory.pictures[key] = make()
    return memory.pictures[key]


def image_url(message: Message, shrink: bool = True) -> str | None:
    if message.get("format") == "path":
        file = Path(str(message["content"])).expanduser()
        try:
            kind, data = file.suffix.lstrip(".").lower(), base64.b64encode(files.read_bytes(file)).decode()
        except OSError:
            return None
    else:
        kind, data = str(message.get("format", "")).partition(".")[2], str(message["content"])
    if shrink and len(data) * 3 // 4 > MAX_IMAGE_BYTES:
        kind, data = _shrunk(kind, data)
    mime = {"jpg": "jpeg", "": "png"}.get(kind, kind)
    return f"data:image/{mime};base64,{data}"


def _shrunk(kind: str, data: str) -> tuple[str, str]:
    """Scale the image until it fits; unchanged if Pillow is missing or cannot read it."""
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
    while len(data) * 3 // 4 > MAX_IMAGE_BYTES:
        scale = min(0.9, (MAX_IMAGE_BYTES / (len(data) * 3 // 4)) ** 0.5)
        image = image.resize((max(1, int(image.width * scale)), max(1, int(image.height * scale))))
        buffer = BytesIO()
        image.save(buffer, saved_as, compress_level=1)
        data = base64.b64encode(buffer.getvalue()).decode()
    return saved_as.lower(), data


# -- less output for small models --------------------------------------------------------------------------------

_FRAME = re.compile(r'^\s*(?:File|Cell) ["<]?(?P<file>[^"\n,]*)')
_LIBRARY = re.compile(r"site-packages|/lib/python|\\lib\\|^frozen", re.IGNORECASE)
_MAX_LINE_LENGTH = 300


def digest(text: str) -> str:
    """Reduce the last traceback in the text to the frames that are not of libraries."""
    before, heading, trace = text.rpartition("Traceback (most recent call last)")
    if not heading:
        return text
    # IPython writes a line of dashes and the error's name before it.
    printed = before.rstrip(" ").rpartition("-" * 20)[0].rstrip("-\n") if before.endswith(" ") else before
    kept: list[str] = []
    is_kept = True
    for line in trace.lstrip(":- ").splitlines():
        frame = _FRAME.match(line)
        if frame:
            is_kept = not _LIBRARY.search(frame["file"])
        elif line[:1].strip() and not line.startswith("-"):
            is_kept = True  # the error itself is at the margin
        if is_kept and (line.strip() or (kept and kept[-1].strip())):
            kept.append(line[:_MAX_LINE_LENGTH])
    return "\n".join([printed, *kept]).strip()


def shortened(text: str, most: int) -> str:
    """Return the beginning and the end of a text, and how much is missing between them."""
    head, tail = most // 3, most - most // 3
    return f"{text[:head]}\n[... {len(text) - most:,} characters left out ...]\n{text[-tail:]}"
