"""What the model reads besides the conversation: the system message, its sandbox, and what a block did to files."""

from __future__ import annotations

import getpass
import platform
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from interpreter.config.setting import sources
from interpreter.config.settings import read_prompt
from interpreter.leaves import leaves, load
from interpreter.messages import Message

if TYPE_CHECKING:
    from interpreter.agent.agent import Agent

SITUATION = "You are on {system} as {user}, in {cwd}. Languages: {languages}."
SPAN = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
IN_SANDBOX = (
    "Code runs in a sandbox: it can write only to {places}, the home folder is empty, and there is no network{but}."
)
ASK_FOR_MORE = (
    "If a block needs more, begin it with a comment: `needs: host pypi.org`, `needs: read PATH` or "
    "`needs: write PATH`; the user is asked."
)
NO_SANDBOX = "The sandbox is off: code can access everything the user can."
TEMPORARY = "/tmp" if sys.platform == "linux" else "$TMPDIR"
_SANDBOX, _FIRST_SANDBOX = "sandbox", "sandbox at first"  # the description that the model has now, and had first


class SystemPrompt:
    """The system message of an agent.

    Each part is rendered once and stays the same, because a change would invalidate the server's prompt
    cache. Later changes are sent as messages.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        # The parts that were rendered, by their template. The journal keeps them for a resume.
        self.rendered: dict[str, str] = {}

    def system_message(self) -> Message:
        """Return the message that comes before all others."""
        agent = self._agent
        parts = [agent.settings.system_message]
        if sources(agent.settings)["system_message"] == "default":
            parts = [read_prompt(agent.llm.profile.prompt), self._situation()]
        if any(language.system_message for language in agent.computer.languages):
            parts += [language.system_message or "" for language in agent.computer.runtimes.available()]
        if _FIRST_SANDBOX not in self.rendered:
            self.rendered[_FIRST_SANDBOX] = self.rendered[_SANDBOX] = self._sandbox()
        parts += [self.rendered[_FIRST_SANDBOX], agent.settings.custom_instructions, self._computer(), *self._leaves()]
        text = "\n\n".join(part.strip() for part in parts if part.strip())
        if "{{" in text:
            if text not in self.rendered:
                self.rendered[text] = self.fill(text)
            text = self.rendered[text]
        return {"role": "system", "type": "message", "content": text}

    def fill(self, text: str) -> str:
        """Replace the `{{ code }}` spans of a text with their output."""
        return SPAN.sub(self._output_of, text)

    def sandbox_news(self) -> str:
        """Describe how the sandbox has changed since the model last read about it; empty if it hasn't."""
        now = self._sandbox()
        if self.rendered.get(_SANDBOX, now) == now:
            return ""
        self.rendered[_SANDBOX] = now
        return f"From now on: {now or NO_SANDBOX}"

    def forget_situation(self) -> None:
        """Describe the situation again at the next request, because the workspace has changed."""
        self.rendered.pop(SITUATION, None)

    def _sandbox(self) -> str:
        sandbox: Any = self._agent.actor.permissions.sandbox
        # A small model copies the example into every block. What the sandbox denied is in the output anyway.
        if sandbox is None or self._agent.llm.profile.name in ("minimal", "tiny"):
            return ""
        places = [*([sandbox.workspace] if sandbox.writes_workspace else []), *map(str, sandbox.writable), TEMPORARY]
        but = f" but to {', '.join(sandbox.hosts)}" if sandbox.hosts else ""
        described = IN_SANDBOX.format(places=" and ".join(places), but=but)
        return described if sandbox.fixed else f"{described} {ASK_FOR_MORE}"

    def _computer(self) -> str:
        """Return the text about the `computer` object: the user's own, or ours if the model can use it."""
        agent, computer = self._agent, self._agent.computer
        if computer.system_message is not None:
            return computer.system_message
        profile = agent.llm.profile.name
        is_chosen = sources(computer)["computer.import_computer_api"] != "default"
        # A longer prompt costs a small model more than tools that it cannot handle are worth.
        is_fit = profile == "full" or (profile == "short" and is_chosen) or agent.is_observed
        is_in_terminal = agent.settings.in_terminal_interface and not is_chosen
        is_on = computer.import_computer_api or agent.is_observed or is_in_terminal
        return read_prompt("computer") if is_on and is_fit else ""

    def _leaves(self) -> Iterator[str]:
        """Yield what the leaves in use say."""
        for part in (part for leaf in leaves() for part in leaf.prompt):
            if self._agent.uses(part):
                if part.make not in self.rendered:
                    self.rendered[part.make] = load(part.make)(self._agent)
                yield self.rendered[part.make]

    def _situation(self) -> str:
        if SITUATION not in self.rendered:
            try:
                user = getpass.getuser()
            except (KeyError, OSError, ImportError):  # a number without a name, as in containers
                user = "an unnamed user"
            languages = self._agent.computer.runtimes.describe_languages(
                only_common=self._agent.llm.profile.name != "full"
            )
            system, machine = f"{platform.system()} {platform.release()}", self._agent.computer.machine
            if machine is not None and machine.about is not None:
                system, user = (
                    f"{machine.about.system} ({machine.name}, not the user's own machine)",
                    machine.about.user,
                )
            self.rendered[SITUATION] = SITUATION.format(
                system=system,
                user=user,
                cwd=self._agent.computer.context.cwd,
                languages=languages,
            )
        return self.rendered[SITUATION]

    def _output_of(self, span: re.Match[str]) -> str:
        """Return the output of the Python code in a `{{ code }}` span."""
        messages = self._agent.computer.run("python", span.group(1).strip())
        texts = [m["content"] for m in messages if m["type"] == "console" and m.get("recipient") != "user"]
        return "".join(texts).strip()
