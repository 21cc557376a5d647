"""From messages to a model and back."""

from interpreter.llm.llm import Llm, SideChat

__all__ = ["Llm", "SideChat"]
