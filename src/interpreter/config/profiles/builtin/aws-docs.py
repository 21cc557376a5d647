"""Answers from the documentation of AWS, looked up through Perplexity. Needs PERPLEXITY_API_KEY (or PPLX_API_KEY)."""

from interpreter import interpreter

SEARCH = '''
def search_aws_docs(query):
    """What the documentation of AWS says, with its sources."""
    import json, os, urllib.request

    key = os.environ.get("PERPLEXITY_API_KEY") or os.environ["PPLX_API_KEY"]
    body = {
        "model": "sonar",
        "messages": [{"role": "user", "content": query}],
        "search_domain_filter": ["docs.aws.amazon.com"],
    }
    request = urllib.request.Request(
        "https://api.perplexity.ai/chat/completions",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        said = json.load(answer)
    return "\\n".join([said["choices"][0]["message"]["content"], *said.get("citations", [])])
'''

interpreter.llm.model = "anthropic/claude-sonnet-5-5"
interpreter.custom_instructions = (
    "The Python session has a function search_aws_docs(query) that looks things up in the documentation of AWS and "
    "returns text. Before you write code that uses AWS, print what it says about the calls that you need."
)
interpreter.computer.run("python", SEARCH)
