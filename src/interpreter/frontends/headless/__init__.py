"""Headless front end: one message, answered as text or as JSON events, with an exit code."""
