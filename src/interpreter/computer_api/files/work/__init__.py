"""Work on files at the session: on Python 3.8 and later, with the standard library alone.

With a sandbox they run in a separate process inside it, so that the host never opens a path for code in there.
"""
