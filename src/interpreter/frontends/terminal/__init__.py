"""The terminal front end; its parts are loaded when they are needed."""

from interpreter.frontends.terminal.library import (
    local_setup,
    show_chat,
    show_events,
    show_message,
)

__all__ = ["local_setup", "show_chat", "show_events", "show_message"]
