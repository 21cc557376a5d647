from asking import asking

__all__ = ["asking"]
