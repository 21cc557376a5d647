"""What a model can call: `execute`, which runs code, and the tools that you register."""

from interpreter.tools.tool import FileEdit, Tool, ToolContext
from interpreter.tools.toolbox import EXECUTE, Toolbox, execute_tool, package_tools

__all__ = ["EXECUTE", "FileEdit", "Tool", "ToolContext", "Toolbox", "execute_tool", "package_tools"]
