"""A conversation written down: as a notebook, as Markdown, as a page, as a program."""
