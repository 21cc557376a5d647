"""Tokens and seconds of eight tasks with an MCP server: by native calls, and as code. A scripted model does both well.

Natively, the model gets each result in its conversation, and needs another request for what depends on it. It calls
several tools in one request where nothing depends on another call.
"""

import json
import sys
import time
from pathlib import Path

from common import ARGUMENTS, report

from interpreter import OpenInterpreter
from interpreter.llm.context import estimate_text
from interpreter.mcp.config import save_server

sys.path.insert(0, ARGUMENTS["tests"])
sys.path.insert(0, str(Path(__file__).parent))

from shop_server import CUSTOMERS, ORDERS, STOCK

from model_replies import Reply, _call_deltas, pieces
from model_server import ModelServer, text, tool_call

SHOP = str(Path(__file__).parent / "shop_server.py")
BIG = [row for row in ORDERS if row["count"] * row["price"] > 450]
UNPAID = sorted({row["customer"] for row in ORDERS if not row["paid"]})
LOW = [item for item, count in STOCK.items() if count < 5]
ROME = [row["id"] for row in CUSTOMERS if row["city"] == "Rome"]
# Each task: the requests with native calls, one list per request, and the code that does the same.
TASKS = {
    "one value": ([[("get_stock", {"item": "item-3"})]], "print(tools.shop.get_stock('item-3'))"),
    "total of all orders": (
        [[("list_orders", {})]],
        "print(sum(row['count'] * row['price'] for row in tools.shop.list_orders()))",
    ),
    "largest order and its customer": (
        [[("list_orders", {})], [("get_customer", {"customer": 5})]],
        "row = max(tools.shop.list_orders(), key=lambda row: row['count'] * row['price'])\n"
        "print(row['id'], tools.shop.get_customer(row['customer'])['name'])",
    ),
    "stock of 25 items": (
        [[("get_stock", {"item": item}) for item in STOCK]],
        "low = [n for n in range(25) if tools.shop.get_stock(f'item-{n}') < 5]\nprint(low)",
    ),
    "order what is low": (
        [[("get_stock", {"item": item}) for item in STOCK], [("order_more", {"item": i, "count": 20}) for i in LOW]],
        "for n in range(25):\n    if tools.shop.get_stock(f'item-{n}') < 5:\n"
        "        print(tools.shop.order_more(f'item-{n}', 20))",
    ),
    "remind who has not paid": (
        [
            [("list_orders", {"paid": False})],
            [("remind", {"customer": each, "text": "Please pay your order."}) for each in UNPAID],
        ],
        "for number in {row['customer'] for row in tools.shop.list_orders(paid=False)}:\n"
        "    tools.shop.remind(number, 'Please pay your order.')\nprint('done')",
    ),
    "orders of a city": (
        [[("list_customers", {"city": "Rome"})], [("list_orders", {"customer": each}) for each in ROME]],
        "customers = tools.shop.list_customers(city='Rome')\n"
        "rows = [row for each in customers for row in tools.shop.list_orders(customer=each['id'])]\n"
        "print(len(rows), sum(row['count'] for row in rows))",
    ),
    "join, group and sort": (
        [[("list_orders", {}), ("list_customers", {})]],
        "import collections\ncity = {c['id']: c['city'] for c in tools.shop.list_customers()}\n"
        "total = collections.Counter()\nfor row in tools.shop.list_orders():\n"
        "    total[city[row['customer']]] += row['count'] * row['price']\nprint(total.most_common(3))",
    ),
}


def native(calls):
    """One reply with several calls."""
    deltas = []
    for index, (name, arguments) in enumerate(calls):
        deltas += _call_deltas(pieces(json.dumps(arguments), None), f"call_{index}", index, f"shop__{name}")
    return Reply(tuple(deltas))


def spent(replies, **settings):
    with ModelServer([*replies, text("Done."), *[text("Done.")] * 5]) as server:
        interpreter = OpenInterpreter(auto_run=True, **settings)
        llm = interpreter.llm
        llm.model, llm.api_base, llm.api_key, llm.max_retries = "openai/gpt-4o", server.base_url, "key", 0
        llm.supports_functions, llm.context_window, llm.model_profile = True, 200_000, "full"
        interpreter.max_output = 100_000
        try:
            interpreter.computer.run("python", "tools.shop.get_stock('item-1')")  # both start from a warm session
            began = time.perf_counter()
            interpreter.chat("Do it.", display=False)
            seconds = time.perf_counter() - began
        finally:
            interpreter.computer.terminate()
        requests = [request.body for request in server.requests if request.messages]
    assert len(requests) == len(replies) + 1, (len(requests), len(replies))
    tokens = sum(estimate_text(json.dumps([body["messages"], body["tools"]])) for body in requests)
    return {"tokens": tokens, "seconds": seconds, "requests": len(requests)}


save_server("shop", {"command": sys.executable, "args": [SHOP]})
warm = OpenInterpreter(auto_run=True)
warm.computer.run("python", "dir(tools.shop)")
warm.computer.terminate()
rows = {}
for task, (steps, code) in TASKS.items():
    rows[task] = {
        "native": spent([native(calls) for calls in steps], mcp_native=["shop"], mcp_prompt_tokens=0),
        "code": spent([tool_call("python", code)]),
    }
    print(task, rows[task], file=sys.stderr)
total = {
    way: {key: sum(row[way][key] for row in rows.values()) for key in ("tokens", "seconds", "requests")}
    for way in ("native", "code")
}
report(tasks=rows, **total)
