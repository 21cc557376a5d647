"""Many hands on one session: `ask` and `agent` in code, sub-agents, and several tries of one task."""
