"""The conversation as a program: which blocks its results need, in plain Python, with its dependencies declared."""
