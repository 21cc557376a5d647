"""The terminal front end. `chat.py` has the chat of the program, and what `chat(display=True)` uses."""
