"""What a model can call: `execute`, which runs code, and the tools that you register."""

from interpreter.tools.toolbox import EXECUTE, Permit, Tool, Toolbox, call_tool, execute_tool

__all__ = ["EXECUTE", "Permit", "Tool", "Toolbox", "call_tool", "execute_tool"]
