"""The system message of a turn: the user's text, what languages add, and `{{ code }}` spans rendered once."""

from __future__ import annotations

import getpass
import platform
import re
from typing import TYPE_CHECKING

from interpreter.agent.sandbox_prompt import first_words
from interpreter.config.settings import read_prompt, sources
from interpreter.messages import Message

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter

SITUATION = "You are on {system} as {user}, in {cwd}. Languages: {languages}."
SKILLS = "Python has these functions, kept from earlier; computer.skills.read(name) shows one: {}"
MOST_SKILLS = 30
SPAN = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


def system_message(interpreter: OpenInterpreter) -> Message:
    """The message that stands before all others."""
    parts = [interpreter.system_message]
    if sources(interpreter)["system_message"] == "default":
        parts = [read_prompt(interpreter.llm.profile.prompt), situation(interpreter)]
    if interpreter.os:
        parts.append(read_prompt("os"))
    parts += [language.system_message or "" for language in interpreter.computer.languages]
    parts += [first_words(interpreter), interpreter.custom_instructions]
    parts += [about_computer(interpreter), about_skills(interpreter)]
    text = "\n\n".join(part.strip() for part in parts if part.strip())
    return {"role": "system", "type": "message", "content": render(interpreter, text)}


def about_computer(interpreter: OpenInterpreter) -> str:
    """What the model is told of the `computer` object: the user's words, or what there is, where that is wanted."""
    computer, profile = interpreter.computer, interpreter.llm.profile.name
    if computer.system_message is not None:
        return computer.system_message
    is_chosen = sources(computer)["computer.import_computer_api"] != "default"
    # A small model loses more by a longer prompt than it gains by knowing of tools that it cannot handle.
    is_fit = profile == "full" or (profile == "short" and is_chosen) or interpreter.os
    is_on = computer.import_computer_api or interpreter.os or (interpreter.in_terminal_interface and not is_chosen)
    return read_prompt("computer") if is_on and is_fit else ""


def about_skills(interpreter: OpenInterpreter) -> str:
    """The functions that Python has from earlier times, where that is wanted; told once, as the situation is."""
    if not interpreter.computer.import_skills:
        return ""
    rendered = interpreter._rendered
    if SKILLS not in rendered:
        names = interpreter.computer.skills.import_skills()
        listed = ", ".join(f"{name}()" for name in names[:MOST_SKILLS]) + (", ..." if names[MOST_SKILLS:] else "")
        rendered[SKILLS] = SKILLS.format(listed) if names else ""
    return rendered[SKILLS]


def situation(interpreter: OpenInterpreter) -> str:
    """Where the model is; told once, since a later change would cost the server's cache of the conversation."""
    rendered = interpreter._rendered
    if SITUATION not in rendered:
        rendered[SITUATION] = SITUATION.format(
            system=f"{platform.system()} {platform.release()}",
            user=user_name(),
            cwd=interpreter.computer.surroundings.cwd,
            languages=interpreter.computer.describe_languages(),
        )
    return rendered[SITUATION]


def user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name, as containers have
        return "an unnamed user"


def render(interpreter: OpenInterpreter, text: str) -> str:
    """Replace each span by what its Python prints; the same text is rendered once, so that prompt caches hold."""
    if "{{" not in text:
        return text
    rendered = interpreter._rendered
    if text not in rendered:
        rendered[text] = SPAN.sub(lambda span: output_of(interpreter, span.group(1).strip()), text)
    return rendered[text]


def output_of(interpreter: OpenInterpreter, code: str) -> str:
    messages = interpreter.computer.run("python", code)
    texts = [m["content"] for m in messages if m["type"] == "console" and m.get("recipient") != "user"]
    return "".join(texts).strip()
