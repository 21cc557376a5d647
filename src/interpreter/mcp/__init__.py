"""MCP: the tools of other programs as functions in the live session. The SDK is imported on first use."""
