"""Many tasks, one session each: read from a file, run by worker processes, each result written once."""
