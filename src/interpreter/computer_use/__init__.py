import interpreter.old_paths  # noqa: F401 - finds what public code imports from below this package
