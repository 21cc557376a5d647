"""The hands: mouse, keyboard and clipboard, on whatever carries the screen."""
