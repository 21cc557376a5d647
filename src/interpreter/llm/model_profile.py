"""Model profiles: how to prompt a model, chosen by its name, its size, or else by how it replies.

The measurements behind the rows are in docs/small-models.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import NamedTuple

from interpreter.llm.providers import calls_tools, identify, is_loopback

AS_IS = "{content}"
ServedModel = tuple[str, str | None]  # a model and its server's address


@dataclass(frozen=True)
class ModelProfile:
    """How to prompt a kind of model, and how much of its reply to use.

    The texts are for models that write their code in fences; None leaves the setting of that name as it is.
    What the user has set takes precedence.
    """

    name: str
    prompt: str = "system"  # the file in prompts/ with the system message
    # How a request goes out. `{files}` is a preview of the folder and of the files that it names, `{languages}` the
    # languages to suggest.
    user_template: str = AS_IS
    # `user_template` says how code is written, so the system message doesn't.
    is_instructed_beside: bool = False
    output_template: str | None = None
    empty_output_template: str | None = None
    failed_output_template: str | None = None
    calls_tools: bool = True  # if its name says that it can
    one_block: bool = False  # a reply ends with its first block; what follows is made up
    digests_errors: bool = False  # tracebacks go out without the frames of libraries
    max_output: int | None = None  # characters of a block's output, if that is less than the user's limit
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    same_results: int = 2  # how often a block may run with the same result
    tells_files: bool = False  # report what a block did to files, since it doesn't look
    reviews_answers: bool = False  # ask once again if the answer leaves something out, or states what nothing shows
    same_failures: int | None = None  # in a row, before the model is asked for another approach


class Forms(NamedTuple):
    """The wording of one request's messages."""

    user_template: str = AS_IS
    always_use_user_template: bool = False
    output_template: str = AS_IS
    failed_output_template: str = AS_IS
    empty_output_template: str = "No output"
    output_sender: str = "user"
    shrink_images: bool = True
    vision: bool = False
    detail: str = "low"
    pictures: int | None = None  # the most pictures from the computer; None is all
    lists: int | None = None  # the most lists of what is on the screen
    secrets: Mapping[str, str] | None = None  # to redact, by their descriptions; None redacts nothing
    describe: Callable[..., str] | None = None
    max_output: int | None = None
    digests_errors: bool = False


# If a server's chat template doesn't fit the model, the model's control marks come as text.
_ENDS = ("<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|endoftext|>")

FULL = ModelProfile("full")
SHORT = ModelProfile(
    "short",
    prompt="short",
    user_template=(
        "{content}\n\n{files}\n\n"
        "Write one {languages} code block that does this and prints the result. If no code is needed, just answer."
    ),
    is_instructed_beside=True,
    output_template=(
        "Output:\n{content}\n\n"
        "If the task is done, answer now in one or two sentences without code. Otherwise write the next code block."
    ),
    empty_output_template=(
        "The code ran without an error and printed nothing.\n\n"
        "If the task is done, say so in one sentence without code. Otherwise write the next code block."
    ),
    failed_output_template="The code failed:\n{content}\n\nWrite the whole corrected code block.",
    one_block=True,
    digests_errors=True,
    same_results=1,
    tells_files=True,
    reviews_answers=True,
    same_failures=2,
)
MINIMAL = replace(
    SHORT, name="minimal", prompt="minimal", calls_tools=False, max_output=2000, max_tokens=1500, stop=_ENDS
)
# The smallest models don't know when they are done, so they answer after the first good output.
TINY = replace(
    MINIMAL,
    name="tiny",
    output_template="Output:\n{content}\n\nAnswer now in one sentence without code.",
    empty_output_template=(
        "The code ran without an error and printed nothing.\n\nSay in one sentence what was done, without code."
    ),
    max_output=1000,
    max_tokens=800,
)
PROFILES = (FULL, SHORT, MINIMAL, TINY)


# What a name without a number means; Ollama's tags without one are of these sizes.
_USUAL_SIZES = (
    ("smollm*", 1.7), ("tinyllama*", 1.1), ("tinydolphin*", 1.1), ("gemma3n*", 4.0), ("gemma3*", 4.0), ("gemma2*", 9.0),
    ("gemma*", 7.0), ("llama3.2*", 3.0), ("llama3*", 8.0), ("llama-3*", 8.0), ("llama2*", 7.0), ("codellama*", 7.0),
    ("phi3*", 3.8), ("phi-3-mini*", 3.8), ("phi4-mini*", 3.8), ("phi4*", 14.0), ("qwen3*", 8.0), ("qwen2.5*", 7.0),
    ("qwen2*", 7.0), ("mistral-nemo*", 12.0), ("mistral", 7.0), ("mistral:*", 7.0), ("deepseek-r1", 8.0),
    ("deepseek-r1:latest", 8.0), ("deepseek-coder", 1.3), ("starcoder2", 3.0), ("stable-code*", 3.0),
    ("orca-mini*", 3.0),
)  # fmt: skip

_SIZE = re.compile(r"(?<![a-z0-9.])(?:(\d+)x)?e?(\d+(?:\.\d+)?)(b|m)(?![a-z0-9])")
_OWN_MACHINE = ("ollama", "builtin", "lm_studio", "llamafile", "jan", "vllm")
_WITHOUT_TOOLS = ("ollama", "builtin")


def profile_for(model: str, api_base: str | None = None) -> ModelProfile:
    """Return the best match for the model's name and address."""
    size = _size_in(model, api_base)
    if size is None:
        is_small = is_unknown(model, api_base) and identify(model, api_base)[0].startswith(_WITHOUT_TOOLS)
        return SHORT if is_small else FULL
    return _of_size(size)


def is_unknown(model: str, api_base: str | None) -> bool:
    """Return whether a local model's name says nothing about it: it may be small, or proxy a large one."""
    is_known = _size_in(model, api_base) is not None or calls_tools(model, api_base)
    return _is_near(model, api_base) and not is_known


class Assessment:
    """What is known about models with uninformative names: the size their server reports, and how they replied.

    Such a model gets the full profile, with tools, unless its server reports a small size. If it fails to call tools,
    it steps down to the short profile and stays there.
    """

    def __init__(self) -> None:
        self.sizes: dict[ServedModel, float | None] = {}
        self._failed: dict[ServedModel, str] = {}
        # Models that have called a tool; until then, code in their text is a block.
        self.called: set[ServedModel] = set()

    def profile(self, model: str, api_base: str | None) -> ModelProfile:
        served_model, profile = (model, api_base), profile_for(model, api_base)
        if not is_unknown(model, api_base):
            return profile
        if (size := self.sizes.get(served_model)) is not None:
            profile = _of_size(size)
        return SHORT if served_model in self._failed and profile is FULL else profile

    def tries_tools(self, model: str, api_base: str | None) -> bool:
        """Return whether the model gets tools on trial."""
        has_them = not identify(model, api_base)[0].startswith(_WITHOUT_TOOLS)
        return has_them and is_unknown(model, api_base) and self.profile(model, api_base) is FULL

    def failed(self, model: str, api_base: str | None, reason: str) -> str:
        """Note that the model failed and gets the short profile from now on. Return a notice for the user."""
        self._failed.setdefault((model, api_base), reason)
        return f"{model} {reason}, so from now on it gets shorter instructions and no tools. (llm.model_profile)"

    def as_data(self) -> dict[str, str]:
        """Return which models have stepped down and why, for the journal."""
        return {json.dumps(served_model): reason for served_model, reason in self._failed.items()}

    def load(self, data: Mapping[str, str]) -> None:
        """Restore what `as_data` returned."""
        for served_model, reason in data.items():
            model, api_base = json.loads(served_model)
            self._failed[model, api_base] = reason


def _size_in(model: str, api_base: str | None) -> float | None:
    name = identify(model, api_base)[1].lower().rpartition("/")[2]
    size = size_of(name)
    if size is None and _is_near(model, api_base):
        return next((usual for pattern, usual in _USUAL_SIZES if fnmatchcase(name, pattern)), None)
    return size


def _is_near(model: str, api_base: str | None) -> bool:
    return identify(model, api_base)[0].startswith(_OWN_MACHINE) or is_loopback(api_base or "")


def _of_size(size: float) -> ModelProfile:
    # Models of at most this many billion parameters.
    return next((profile for most, profile in ((0.9, TINY), (4.5, MINIMAL), (15.0, SHORT)) if size <= most), FULL)


def size_of(name: str) -> float | None:
    """Return the billions of parameters in a model's name: `qwen2.5-coder:1.5b`, `mixtral-8x7b`."""
    match = _SIZE.search(name.lower())
    if match is None:
        return None
    times, number, unit = match.groups()
    return int(times or 1) * float(number) / (1000 if unit == "m" else 1)
