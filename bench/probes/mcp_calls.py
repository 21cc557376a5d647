"""Seconds for a call of an MCP tool: with the bare SDK, and from a block's code."""

import asyncio
import statistics
import sys
import time
from pathlib import Path

from common import ARGUMENTS, report
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from interpreter import OpenInterpreter
from interpreter.mcp.config import save_server

COUNT = 300
options = Path("options.json").absolute()
options.write_text("{}")
arguments = [ARGUMENTS["server"], str(options)]
CODE = f"""
import time, statistics
def once():
    began = time.perf_counter()
    tools.echo.echo(text="hello")
    return time.perf_counter() - began
print("median", statistics.median(once() for _ in range({COUNT})))
"""


async def bare():
    async with Client(StdioServerParameters(command=sys.executable, args=arguments), cache=None) as client:
        seconds = []
        for _ in range(COUNT):
            began = time.perf_counter()
            await client.call_tool("echo", {"text": "hello"})
            seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


save_server("echo", {"command": sys.executable, "args": arguments})
interpreter = OpenInterpreter(auto_run=True)


def ours():
    output = "".join(str(each["content"]) for each in interpreter.computer.run("python", CODE))
    return float(output.split()[-1])


ours()
pairs = [(asyncio.run(bare()), ours()) for _ in range(3)]
interpreter.computer.terminate()
report(bare=min(pair[0] for pair in pairs), ours=min(pair[1] for pair in pairs))
