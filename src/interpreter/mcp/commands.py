"""`interpreter mcp add`, `list`, `remove` and `test`, and `%mcp` in a chat."""

from __future__ import annotations

import asyncio
import getpass
import os
import shlex
import sys
from contextlib import redirect_stdout, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from interpreter.console_text import visible
from interpreter.errors import MissingLeafError, UsageError
from interpreter.frontends.start import configured
from interpreter.host.installation import install_hint
from interpreter.mcp.accounts import account_name, read_secret, save_secret
from interpreter.mcp.config import Server, offers, own_file, own_servers, remember_answer, save_server, servers_for
from interpreter.mcp.connection import Connection
from interpreter.mcp.elicitation import open_browser
from interpreter.mcp.tools import Servers, servers_of, signature
from interpreter.mcp.values import prompt_text

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.flags import Parsed
    from interpreter.frontends.terminal.terminal import Terminal

ADD_FORMS = """Use one of these forms:
  interpreter mcp add NAME https://example.com/mcp [--header 'Authorization: Bearer ${TOKEN}'] [--sse]
  interpreter mcp add NAME [--env KEY=VALUE] -- COMMAND ..."""


def add(arguments: list[str]) -> int:
    """Save a server, then try it. It stays if it doesn't start yet: a token may be missing."""
    name, row = _parsed(arguments[2:])
    if name in own_servers():
        raise UsageError(f"There is already an MCP server named {name!r}. `interpreter mcp remove {name}` removes it.")
    save_server(name, row)
    _ask_for_secrets(own_servers()[name])
    print(f"Added {name} to {own_file()}.")
    return _try(own_servers()[name])


def list_servers(arguments: list[str]) -> int:
    _no_more(arguments[2:])
    servers = servers_for(os.getcwd())
    width = max(map(len, servers), default=0)
    for server in servers.values():
        source = "" if server.source == str(own_file()) else f"  (from {server.source})"
        print(visible(f"{server.name:{width}}  {server.address}{source}"))
    if not servers:
        print(f"No MCP servers yet. {ADD_FORMS}")
    for offer in offers(os.getcwd()):
        if not offer.answer:
            print(
                visible(f"{offer.path} names {', '.join(offer.servers)}: not used. In a chat, %mcp accept uses them.")
            )
    return 0


def remove(arguments: list[str]) -> int:
    name, *rest = arguments[2:] or [""]
    _no_more(rest)
    save_server(name, None)
    save_secret(account_name(name), "")
    print(f"Removed {name}.")
    return 0


def test(arguments: list[str]) -> int:
    name, *rest = arguments[2:] or [""]
    _no_more(rest)
    servers = servers_for(os.getcwd())
    if name not in servers:
        raise UsageError(f"There is no MCP server named {name!r}. `interpreter mcp list` shows them.")
    return _try(servers[name])


def _ask_for_secrets(server: Server) -> None:
    """Ask for the variables that the configuration names and that aren't set, if someone can answer."""
    for name in server.variables:
        if os.environ.get(name) or read_secret(name) or not sys.stdin.isatty():
            continue
        if value := getpass.getpass(f"{name} isn't set. Its value, to keep for later (Enter: none): ").strip():
            print(f"Saved {name} in {save_secret(name, value)}.")


def _visit(server: str, url: str, context: Any) -> bool:
    print(visible(f"{server} asks you to sign in. Opening {url}"))
    open_browser(url)
    return True


def _try(server: Server) -> int:
    """Start a server and list its tools; return 1 if that fails."""
    source = Servers(os.getcwd(), lambda: False)
    connection = source.connection(server)
    connection.visit = _visit
    try:
        connection.connect()
        source.learn(server)
    except Exception as error:  # noqa: BLE001 - the user reads any error here
        print(visible(f"{error}"))
        print(visible("\n".join(f"  {line}" for line in connection.stderr)))
        return 1
    finally:
        connection.close()
    print(f"{server.name} works. It has {len(connection.specs):,} tools:")
    for spec in list(connection.specs.values())[:20]:
        print(visible(f"  tools.{signature(server, spec)}"))
    if len(connection.specs) > 20:
        print(f"  and {len(connection.specs) - 20:,} more")
    return 0


def _parsed(given: list[str]) -> tuple[str, dict[str, Any]]:
    """Read what follows `mcp add`."""
    if "--" in given:
        options, command = given[: given.index("--")], given[given.index("--") + 1 :]
    else:
        options, command = given, []
    row: dict[str, Any] = {"command": command[0], "args": command[1:]} if command else {}
    words: list[str] = []
    rest = iter(options)
    for option in rest:
        if option == "--sse":
            row["type"] = "sse"
        elif option in ("--env", "--header"):
            separator, key = ("=", "env") if option == "--env" else (":", "headers")
            name, found, value = next(rest, "").partition(separator)
            if not found:
                raise UsageError(f"{option} takes NAME{separator}VALUE. {ADD_FORMS}")
            row.setdefault(key, {})[name.strip()] = value.strip()
        elif option.startswith("-"):
            raise UsageError(f"Unknown option {option}. {ADD_FORMS}")
        else:
            words.append(option)
    if len(words) == 2 and not command and words[1].startswith(("http://", "https://")):
        row["url"] = words[1]
    elif len(words) != 1 or not command:
        raise UsageError(ADD_FORMS)
    return words[0], row


def _no_more(rest: list[str]) -> None:
    if rest:
        raise UsageError(f"This takes no more arguments: {shlex.join(rest)}")


def serve(parsed: Parsed) -> int:
    """`--mcp`: serve sessions to the program that started this one, over standard input and output."""
    if find_spec("mcp") is None:
        raise MissingLeafError(f"MCP needs extra packages: {install_hint('mcp')}")
    from interpreter.mcp.serving import serve_stdio

    with redirect_stdout(sys.stderr):  # profiles may print anything
        interpreter, _ = configured(parsed)
    with suppress(KeyboardInterrupt):
        asyncio.run(serve_stdio(interpreter))
    return 0


# -- in a chat ---------------------------------------------------------------------------------------------------------


def magic(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    """Show the servers, turn one off or on, or use those of a file that others wrote."""
    servers, show = servers_of(interpreter.agent), terminal.display.line
    word, _, name = argument.partition(" ")
    name = name.strip()
    known = servers_for(servers.workspace)
    if word in ("off", "on", "stop") and name not in known:
        raise UsageError(f"There is no MCP server named {name!r}. %mcp lists them.")
    match word:
        case "":
            _show(servers, known, show)
        case "off":
            servers.off.add(name)
            servers.connection(known[name]).close()
            show(f"{name} is off for this session.")
        case "on":
            servers.off.discard(name)
            show(f"{name} is on.")
        case "stop":
            servers.connection(known[name]).close()
            show(f"{name} is stopped. The next use starts it again.")
        case "prompt":
            _send_prompt(terminal, interpreter, known, name)
        case "accept":
            open_offers = [offer for offer in offers(servers.workspace) if not offer.answer]
            for offer in open_offers:
                remember_answer(offer, terminal.confirm(visible(offer.text)))
            if not open_offers:
                show("There is no file with MCP servers that you haven't accepted yet.")
        case _:
            raise UsageError(f"%mcp {word} doesn't exist. %help mcp shows what does.")


def _send_prompt(terminal: Terminal, interpreter: OpenInterpreter, known: dict[str, Server], words: str) -> None:
    """Send a server's prompt to the model: `SERVER.PROMPT key=value ...`; without a prompt, list them."""
    name, *pairs = shlex.split(words) or [""]
    first, _, prompt = name.partition(".")
    if first not in known:
        raise UsageError("`%mcp prompt SERVER` lists its prompts, `%mcp prompt SERVER.PROMPT key=value` sends one.")
    connection = servers_of(interpreter.agent).connection(known[first])
    if not prompt:
        for row in connection.prompt()["prompts"]:
            shown = " ".join(f"{each['name']}=..." for each in row.get("arguments") or ())
            terminal.display.line(visible(f"/{first}:{row['name']} {shown}  {row.get('description', '')}"))
        return
    text = prompt_text(connection.prompt(prompt, dict(pair.partition("=")[::2] for pair in pairs)))
    from interpreter.frontends.terminal.chat import answer

    # As data, which is no command, and which attaches none of the files that it names.
    for _ in answer(terminal, interpreter, f"Prompt {prompt} of the MCP server {first}:", visible(text)):
        pass


def expand(interpreter: OpenInterpreter, typed: str) -> str | None:
    """Return the command that `/SERVER:PROMPT key=value` or `%SERVER:PROMPT` stands for; None for other text."""
    server, colon, rest = typed.strip()[1:].partition(":")
    is_prompt = colon and server.isidentifier() and server in servers_for(interpreter.workspace)
    return f"%mcp prompt {server}.{rest}" if is_prompt else None


def _show(servers: Servers, known: dict[str, Server], show: Any) -> None:
    if not known:
        show("No MCP servers yet. `interpreter mcp add` adds one.")
    for server in known.values():
        connection: Connection | None = servers.state(server)
        state = (
            "off for this session" if server.name in servers.off else connection.state if connection else "not started"
        )
        show(visible(f"{server.name}: {state}. {server.address}"))
        for line in list(connection.stderr)[-5:] if connection is not None else ():
            show(f"  {line}", "hint")
    for offer in offers(servers.workspace):
        if not offer.answer:
            show(visible(f"{offer.path} names {', '.join(offer.servers)}. %mcp accept uses them."))
