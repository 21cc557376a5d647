"""The program inside a Python runtime. It runs on Python 3.8 and later with only the standard library.

The supervisor runs `start.py` in the worker it forked; `serve.py` runs the blocks. The driver starts no thread, so that
the process can be forked, and imports nothing from the rest of the package.
"""
