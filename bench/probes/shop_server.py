"""An MCP server for the probes: a shop with orders, customers and stock, always the same."""

import random

from mcp.server.mcpserver import MCPServer

server = MCPServer("shop")
chance = random.Random(7)
CITIES = ["Berlin", "Lima", "Oslo", "Quito", "Rome", "Tokyo"]
CUSTOMERS = [{"id": n, "name": f"Customer {n}", "city": chance.choice(CITIES), "active": n % 3 > 0} for n in range(40)]
ORDERS = [
    {
        "id": 1000 + n,
        "customer": chance.randrange(40),
        "item": f"item-{chance.randrange(25)}",
        "count": chance.randrange(1, 9),
        "price": round(chance.uniform(2, 90), 2),
        "paid": chance.random() < 0.8,
        "note": "Deliver to the back door, please. " * chance.randrange(3),
    }
    for n in range(120)
]
STOCK = {f"item-{n}": chance.randrange(0, 30) for n in range(25)}
SENT: list[dict[str, object]] = []


@server.tool()
def list_orders(customer: int | None = None, paid: bool | None = None) -> list[dict[str, object]]:
    """List orders, all or those of a customer, paid or unpaid."""
    rows = [row for row in ORDERS if customer is None or row["customer"] == customer]
    return [row for row in rows if paid is None or row["paid"] == paid]


@server.tool()
def get_order(order: int) -> dict[str, object]:
    """Get one order by its number."""
    return next(row for row in ORDERS if row["id"] == order)


@server.tool()
def list_customers(city: str | None = None) -> list[dict[str, object]]:
    """List customers, all or those of a city."""
    return [row for row in CUSTOMERS if city is None or row["city"] == city]


@server.tool()
def get_customer(customer: int) -> dict[str, object]:
    """Get one customer by number."""
    return CUSTOMERS[customer]


@server.tool()
def get_stock(item: str) -> int:
    """How many of an item are in stock."""
    return STOCK[item]


@server.tool()
def order_more(item: str, count: int) -> str:
    """Order more of an item for the stock."""
    SENT.append({"item": item, "count": count})
    return f"Ordered {count} of {item}."


@server.tool()
def remind(customer: int, text: str) -> str:
    """Send a customer a reminder."""
    SENT.append({"customer": customer, "text": text})
    return f"Reminded customer {customer}."


if __name__ == "__main__":
    server.run("stdio")
