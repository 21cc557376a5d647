"""OS mode: the model sees the screen and acts on it, in the user's sight and under their thumb."""

from interpreter.computer_api.os_mode.control import Control

__all__ = ["Control"]
