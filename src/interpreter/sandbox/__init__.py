"""The sandbox in which live sessions run: what they can and cannot reach."""
