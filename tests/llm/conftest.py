from scripted_llm import asking

__all__ = ["asking"]
