"""Pictures and charts in the terminal."""
