"""What a model can call: `execute`, which runs code, and the tools that you register."""

from interpreter.tools.toolbox import EXECUTE, Tool, Toolbox, call_tool, execute_tool

__all__ = ["EXECUTE", "Tool", "Toolbox", "call_tool", "execute_tool"]
