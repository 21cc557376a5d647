"""The model that steps in when the first one cannot be reached."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from interpreter.errors import (
    BrokenStreamError,
    ModelError,
    ModelOverloadedError,
    ModelTimeoutError,
    ModelUnreachableError,
    RateLimitedError,
)
from interpreter.llm.providers import identify

if TYPE_CHECKING:
    from interpreter.llm.llm import Llm

# What another model may be spared; a wrong key or a refused request is for the user to know.
STEPS_IN_AFTER: tuple[type[ModelError], ...] = (
    BrokenStreamError,
    ModelOverloadedError,
    ModelTimeoutError,
    ModelUnreachableError,
    RateLimitedError,
)
# With another model at hand nobody waits long for the first one.
LONGEST_WAIT = 5.0

_OF_THE_FIRST = ("supports_functions", "supports_vision", "context_window", "fallback_model")
_WHERE = ("api_base", "api_key", "api_version")


def stand_in(llm: Llm, fallback: str) -> Llm:
    """The same Llm with the fallback as its model: it shares connections, memory and counts with the first.

    Address and key are the first model's own; only a model of the same provider is asked there too.
    """
    other = copy.copy(llm)
    same = identify(fallback)[0] == identify(llm.model, llm.api_base)[0]
    settings = {
        **dict.fromkeys(_OF_THE_FIRST if same else (*_OF_THE_FIRST, *_WHERE)),
        "model": fallback,
    }
    vars(other).update(settings)
    return other
