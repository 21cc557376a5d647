"""The program inside a Python session: runs on Python 3.8 and later with the standard library alone.

The supervisor runs `start.py` in the worker it forked; `serve.py` has the walk of a block. No thread is
started, so that the process can be forked, and nothing of the rest of the package is imported.
"""
