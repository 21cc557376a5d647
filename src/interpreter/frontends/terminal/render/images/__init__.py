"""Pictures in the terminal: kitty, iTerm2 and sixel graphics, else half blocks."""

from interpreter.frontends.terminal.render.images.pictures import Pictures

__all__ = ["Pictures"]
