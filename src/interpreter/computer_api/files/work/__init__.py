"""What is done to files where the session is: on Python 3.8 and later, with the standard library alone.

In a sandbox these run inside, in a process of their own, so that the host never opens a path for the code in there.
"""
