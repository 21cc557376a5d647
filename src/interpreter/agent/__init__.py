"""The agent: one turn of asking the model and performing what it writes, its prompt, and guards against loops."""
