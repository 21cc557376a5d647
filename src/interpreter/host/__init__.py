"""How this process itself uses programs and files that code in a session could have changed.

`processes` starts programs, `files` reads and writes below a folder. Nothing else on the host does either.
"""
