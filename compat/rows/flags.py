# The command line, headless.

# row: version
assert command_line("--version").output.splitlines()[-1].startswith("Open Interpreter ")

# row: help
shown = command_line("--help")
assert shown.status == 0
assert all(flag in shown for flag in ("--model", "--auto_run", "--profile", "--api_base", "--custom_instructions"))

# row: one message from standard input
run = command_line("--stdin", stdin="Say hello\n", replies=("Hello there.",))
assert "Hello there." in run and run.status == 0
assert run.chats[0].messages[-1]["content"].strip() == "Say hello"

# row: code with -y
run = command_line("--stdin", "-y", stdin="Count\n", replies=(code("print(6 * 7)"), "The answer."))
assert "42" in run and "The answer." in run
assert "```python\nprint(6 * 7)\n```" in run.output

# row: --auto_run
run = command_line("--stdin", "--auto_run", stdin="Count\n", replies=(code("print(6 * 7)"), "The answer."))
assert "42" in run and "The answer." in run

# row: -s
run = command_line("-s", "-y", stdin="Say hello\n", replies=("Hello there.",))
assert "Hello there." in run

# row: temperature
run = command_line("--stdin", "--temperature", "0.3", stdin="Hi\n")
assert run.chats[0].body["temperature"] == 0.3

# row: short flags
run = command_line("-s", "-t", "0.3", "-x", "500", "-m", "openai/scripted", "-ci", "Be kind.", stdin="Hi\n")
body = run.chats[0].body
assert body["temperature"] == 0.3 and body["max_tokens"] == 500 and body["model"] == "scripted"
assert "Be kind." in body["messages"][0]["content"]

# row: system message
run = command_line("--stdin", "--system_message", "You are a pirate.", stdin="Hi\n")
assert "You are a pirate." in run.chats[0].messages[0]["content"]

# row: custom instructions
run = command_line("--stdin", "--custom_instructions", "Use metric units.", stdin="Hi\n")
assert "Use metric units." in run.chats[0].messages[0]["content"]

# row: without tool calls
run = command_line("--stdin", "-y", stdin="Count\n", replies=(code("print(6 * 7)"), "Done."), functions=False)
assert "tools" not in run.chats[0].body and "42" in run

# row: flags that change nothing here
run = command_line(
    "--stdin",
    "--disable_telemetry",
    "--no_highlight_active_line",
    "--multi_line",
    "--plain",
    "--safe_mode",
    "off",
    "--max_output",
    "500",
    "--verbose",
    stdin="Hi\n",
)
assert "Hello." in run

# row: a shortened flag
run = command_line("--stdin", "--temp", "0.3", stdin="Hi\n")
assert run.chats[0].body["temperature"] == 0.3

# row: an unknown flag
run = command_line("--no_such_flag")
assert run.status != 0 and "no_such_flag" in run

# row: --loop
run = command_line("--stdin", "--loop", "-y", stdin="Do it\n", replies=("Working.", "The task is done."))
assert len(run.chats) == 2 and "The task is done." in run

# row: a budget
run = command_line("--stdin", "--max_budget", "0.5", stdin="Hi\n")
assert "Hello." in run

# row: the API version
run = command_line("--stdin", "--api_version", "2024-02-01", stdin="Hi\n")
assert "Hello." in run

# row: the file of the conversation
import pathlib

command_line("--stdin", stdin="hello there friend\n")
files = [f.name for f in pathlib.Path.home().glob(".config/open-interpreter/conversations/*.json")]
assert len(files) == 1 and files[0].startswith("hello_there__"), files
