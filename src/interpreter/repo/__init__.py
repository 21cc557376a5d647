"""Work in a repository: diffs on the card, edits that fit, exact commits, and an undo that knows git."""
