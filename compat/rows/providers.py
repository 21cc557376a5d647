# A provider's prefix with an address of the user's own: what that server is asked.

# row: the library drops a provider's prefix
from interpreter import interpreter

server = scripted(*["Hello."] * 8)
names = [
    *("groq/compound", "openrouter/some-lab/some-model", "deepseek/deepseek-chat", "mistral/mistral-small"),
    *("together_ai/meta-lab/some-model", "huggingface/meta-lab/some-model", "xai/grok-3", "openai/openai/gpt-oss"),
]
for name in names:
    interpreter.llm.model = name
    interpreter.llm.api_key = "x"
    interpreter.chat("Hi", display=False)
assert [chat.body["model"] for chat in server.chats] == [name.partition("/")[2] for name in names]
assert {chat.path for chat in server.chats} == {"/v1/chat/completions"}

# row: the command line keeps a provider's prefix
run = command_line("--stdin", "--model", "groq/compound", stdin="Hi\n")
assert run.chats[0].body["model"] == "groq/compound" and run.chats[0].path == "/v1/chat/completions"

# row: the command line keeps the prefix of a provider with its own protocol
run = command_line("--stdin", "--model", "gemini/some-model", stdin="Hi\n")
assert run.chats[0].body["model"] == "gemini/some-model" and run.chats[0].path == "/v1/chat/completions"

# row: openai/ is dropped on the command line
run = command_line("--stdin", "--model", "openai/meta-lab/some-model", stdin="Hi\n")
assert run.chats[0].body["model"] == "meta-lab/some-model"

# row: a profile's address counts as the command line's
import pathlib

folder = pathlib.Path.home() / ".config/open-interpreter/profiles"
folder.mkdir(parents=True)
(folder / "mine.yaml").write_text("llm:\n  model: groq/compound\nversion: 0.2.5\n")
run = command_line("--profile", "mine.yaml", "--model", "groq/other", "--stdin", stdin="Hi\n")
assert run.chats[0].body["model"] == "groq/other"
