from conversation import chatting

__all__ = ["chatting"]
