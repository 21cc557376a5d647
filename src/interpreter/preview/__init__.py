"""Previews: a block runs in a copy-on-write view of the files, and its changes are then applied or discarded."""
