"""The request that is made of a conversation: in the form of the settings, or of the model's profile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from interpreter.config.settings import sources
from interpreter.llm.capabilities import calls_tools, sees_images
from interpreter.llm.compaction import Cut
from interpreter.llm.computer_use import computer_tool, kind_of
from interpreter.llm.convert import Forms, convert
from interpreter.llm.peek import is_for_shell, names_table, peek
from interpreter.llm.secrets import secret_values
from interpreter.llm.text_chat import TextChat
from interpreter.llm.tool_chat import ToolChat
from interpreter.messages import Message

if TYPE_CHECKING:
    from interpreter.llm.llm import Llm

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
    known = llm.interpreter.computer.surroundings.environment()
    return secret_values(known, [("API key", llm.api_key)])


def _of_the_profile(llm: Llm, forms: Forms, messages: Sequence[Message]) -> Forms:
    """The texts of the profile in the place of those that nobody has set."""
    profile = llm.profile
    given = sources(llm.interpreter)

    def chosen(name: str, text: str | None, own: str) -> str:
        return text if text is not None and given[name] == "default" else own

    user_template = profile.user_template
    if "{files}" in user_template:
        words, folder = _last_words(messages), llm.interpreter.computer.surroundings.cwd
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
