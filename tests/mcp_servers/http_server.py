"""An MCP server made with the SDK, over HTTP: streamable or, with `sse`, of the first generation. A program of its own."""

from __future__ import annotations

import sys
from typing import Any

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("http")


@server.tool()
async def add(first: int, second: int, context: Context) -> int:
    """Add two numbers."""
    await context.report_progress(1, 2, "half")
    return first + second


@server.tool()
def headers(context: Context) -> dict[str, Any]:
    """The headers of the request."""
    request = context.request_context.request
    return dict(request.headers) if request is not None else {}


if __name__ == "__main__":
    port = int(sys.argv[2])
    if sys.argv[1] == "sse":
        server.run("sse", host="127.0.0.1", port=port)
    else:
        server.run("streamable-http", host="127.0.0.1", port=port)
