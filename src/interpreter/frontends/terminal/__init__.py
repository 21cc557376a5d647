"""The terminal front end. `library.py` is what `chat(display=True)` uses, `chat.py` the chat of the program."""
