"""From messages to a model and back."""

from interpreter.llm.llm import CustomLlm, Llm, SideChat

__all__ = ["CustomLlm", "Llm", "SideChat"]
