"""From messages to a model and back."""

from interpreter.llm.llm import Llm

__all__ = ["Llm"]
