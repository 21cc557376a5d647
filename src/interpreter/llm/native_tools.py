"""Tools that providers have trained their models on, such as the computer tool: their calls become code."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class NativeTool(dict[str, Any], ABC):
    """An entry among the tools of a request, in the provider's own form.

    A call of it becomes code, so it is shown, approved, recorded and run like any other block. The reply itself goes
    back to the model in its original form.
    """

    beta = ""  # what the provider wants in the header for beta features

    @abstractmethod
    def to_code(self, call: Mapping[str, Any]) -> str:
        """Convert a call, as the provider sends it, to Python."""

    def as_arguments(self, call: Mapping[str, Any]) -> str:
        """Return the arguments of a call of `execute` that runs the code."""
        return json.dumps({"language": "python", "code": self.to_code(call)}, ensure_ascii=False)


class NativeTools(Protocol):
    """What has such a tool for some models."""

    def tool(self, wire: str, model: str) -> NativeTool | None: ...


def native_tool_in(tools: Sequence[Mapping[str, Any]] | None) -> NativeTool | None:
    """Find the provider's own tool in a request."""
    return next((tool for tool in tools or () if isinstance(tool, NativeTool)), None)
