"""Search your past screens and conversations, as recorded by Screenpipe on this machine."""

from interpreter import interpreter

SEARCH = '''
def search_screenpipe(query, limit=5, start_time=None, end_time=None):
    """What was seen or heard; times in ISO 8601, UTC."""
    import json, urllib.parse, urllib.request

    asked = {"q": query, "limit": limit, "content_type": "all", "start_time": start_time, "end_time": end_time}
    given = urllib.parse.urlencode({name: value for name, value in asked.items() if value is not None})
    with urllib.request.urlopen(f"http://localhost:3030/search?{given}", timeout=30) as answer:
        return json.load(answer)["data"]
'''

interpreter.llm.model = "groq/openai/gpt-oss-120b"
interpreter.custom_instructions = (
    "The Python session has a function search_screenpipe(query, limit=5, start_time=None, end_time=None) that returns "
    "a list of what was on the user's screen or was said near them. Use it when the user asks about their own past."
)
interpreter.computer.run("python", SEARCH)
