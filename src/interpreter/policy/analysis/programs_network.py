"""Programs that talk to other machines and to databases."""

from __future__ import annotations

import re

from interpreter.policy.analysis.arguments import Arguments
from interpreter.policy.analysis.handlers import Call, handles
from interpreter.policy.analysis.notes import Doing, Notes
from interpreter.policy.analysis.sql import changes

_CURL_VALUES = (
    "-o --output -X --request -d --data --data-raw --data-binary --data-urlencode --json -F --form -H "
    "--header -u --user -A --user-agent -e -T --upload-file -b --cookie -c --cookie-jar -x --proxy -m "
    "--max-time --connect-timeout -w --write-out --retry --url -K --config --cacert --cert --key --resolve "
    "-r --range -D --dump-header --output-dir"
)
_CURL_SENDS = (
    "-d",
    "--data",
    "--data-raw",
    "--data-binary",
    "--data-urlencode",
    "--json",
    "-F",
    "--form",
    "-T",
    "--upload-file",
)
_REMOTE = re.compile(r"(?:[\w.-]+@)?[\w.-]+:(?!//)(?!\\)")
_CLOUDS = (
    "aws gcloud az gsutil bq doctl heroku flyctl fly vercel netlify firebase wrangler s3cmd rclone mc terraform tofu "
    "pulumi kubectl helm ansible ansible-playbook gh glab hub stripe twilio"
)
_WGET_VALUES = (
    "-O -P -o -a -U -t -T -Q --output-document --directory-prefix --header --user --password --post-data --post-file -d"
)


@handles("curl", "curlie")
def curl(call: Call, doing: Doing, notes: Notes) -> None:
    arguments = Arguments(call.arguments, _CURL_VALUES)
    method = "".join(arguments.value("-X", "--request")).upper() or "GET"
    sends = arguments.has(*_CURL_SENDS) or method not in ("GET", "HEAD")
    for address in arguments.operands + arguments.value("--url") or [""]:
        doing.network(address, "send" if sends else "get")
        if arguments.has("-O", "--remote-name", "-J", "--remote-name-all"):
            doing.write(address.rstrip("/").rsplit("/", 1)[-1].partition("?")[0])
    doing.write(*arguments.value("-o", "--output", "-c", "--cookie-jar", "-D", "--dump-header"))
    doing.read(*arguments.value("-T", "--upload-file", "-K", "--config"))
    for data in arguments.value("-d", "--data", "--data-binary", "-F", "--form", "--json"):
        if "@" in data[:1] or "=@" in data:
            doing.read(data.partition("@")[2].partition(";")[0])


@handles("wget", "aria2c")
def wget(call: Call, doing: Doing, notes: Notes) -> None:
    arguments = Arguments(call.arguments, _WGET_VALUES)
    sends = arguments.has("--post-data", "--post-file", "--method", "--body-data", "--body-file")
    named = arguments.value("-O", "--output-document")
    folder = next(iter(arguments.value("-P", "--directory-prefix")), ".")
    for address in arguments.operands or [""]:
        doing.network(address, "send" if sends else "get")
        if not named and not arguments.has("--spider"):
            doing.write(f"{folder}/{address.rstrip('/').rsplit('/', 1)[-1].partition('?')[0]}".removeprefix("./"))
    doing.write(*named, *arguments.value("-o"))
    doing.read(*arguments.value("--post-file", "--body-file"))


@handles("http", "https", "xh")
def httpie(call: Call, doing: Doing, notes: Notes) -> None:
    operands = [word for word in call.arguments if not word.startswith("-")]
    method = operands.pop(0) if operands and re.fullmatch(r"[A-Z]+", operands[0]) else ""
    sends = method not in ("", "GET", "HEAD") or any("=" in word for word in operands[1:])
    doing.network("".join(operands[:1]), "send" if sends else "get")


@handles(
    "ssh", "sftp", "mosh", "telnet", "nc", "ncat", "netcat", "socat", "ftp", "lftp", "nmap", "openssl", "ssh-copy-id"
)
def connection(call: Call, doing: Doing, notes: Notes) -> None:
    if call.words[0] == "openssl" and call.arguments[:1] != ["s_client"]:
        if "".join(call.arguments[:1]) in ("version", "dgst", "rand", "base64", "md5", "sha256"):
            return doing.read(*(word for word in call.arguments[1:] if not word.startswith("-")))
        return doing.unknown("openssl")
    taking = "-p -i -l -o -L -R -D -F -J -b -c -w -q -connect"
    arguments = Arguments(call.arguments, taking, stop_early=True)
    address = next(iter(arguments.operands + arguments.value("-connect")), "")
    doing.network(address, "send")
    return None


@handles("scp", "rsync")
def remote_copy(call: Call, doing: Doing, notes: Notes) -> None:
    taking = "-e -P -i -o -F -l -S --exclude --include --rsh --filter --exclude-from"
    arguments = Arguments(call.arguments, taking)
    *sources, target = arguments.operands or [""]
    for path in sources:
        if _is_remote(path):
            doing.network(path, "get")
        else:
            doing.read(path)
    if _is_remote(target):
        doing.network(target, "send")
    else:
        doing.write(target)
        if arguments.has("--delete", "--delete-after", "--delete-excluded"):
            doing.delete(f"{target.rstrip('/')}/*", tree=True)
    if arguments.has("--remove-source-files"):
        doing.delete(*sources, tree=True)


def _is_remote(path: str) -> bool:
    return path.startswith("rsync://") or bool(_REMOTE.match(path))


@handles("mail", "mailx", "sendmail", "mutt", "msmtp", "swaks")
def mail(call: Call, doing: Doing, notes: Notes) -> None:
    doing.network("", "send")


@handles(*_CLOUDS.split())
def service(call: Call, doing: Doing, notes: Notes) -> None:
    asked = [word for word in call.arguments if not word.startswith("-")]
    reads = any(
        re.match(r"(list|ls|get|describe|show|status|view|version|help|plan|config|whoami|search|diff|logs)\b", word)
        for word in asked[:3]
    )
    doing.network("", "get" if reads else "send")


@handles(
    "psql",
    "mysql",
    "mariadb",
    "mongo",
    "mongosh",
    "redis-cli",
    "clickhouse-client",
    "sqlcmd",
    "cqlsh",
    "influx",
    "pgcli",
    "mycli",
)
def database(call: Call, doing: Doing, notes: Notes) -> None:
    arguments = Arguments(call.arguments, "-c -e -U -h -p -d -f -u -P --command --execute --eval --host --file")
    host = next(iter(arguments.value("-h", "--host")), "localhost")
    doing.network(host, "send")
    codes = arguments.value("-c", "--command", "-e", "--execute", "--eval") + ([call.stdin] if call.stdin else [])
    doing.read(*arguments.value("-f", "--file"))
    if not codes or any(changes(code) for code in codes):
        doing.note("database", call.words[0], how="server")


@handles(
    "dropdb",
    "createdb",
    "dropuser",
    "createuser",
    "pg_restore",
    "mysqladmin",
    "mongorestore",
    "mysqlimport",
    "flyway",
    "alembic",
)
def database_changes(call: Call, doing: Doing, notes: Notes) -> None:
    doing.note("database", call.words[0], how="server")


@handles("pg_dump", "mysqldump", "mongodump")
def database_dump(call: Call, doing: Doing, notes: Notes) -> None:
    arguments = Arguments(call.arguments, "-f -U -h -p -d -u -o --file --out")
    doing.network(next(iter(arguments.value("-h")), "localhost"), "get")
    doing.write(*arguments.value("-f", "--file", "-o", "--out"))


@handles("sqlite3", "duckdb")
def database_file(call: Call, doing: Doing, notes: Notes) -> None:
    arguments = Arguments(call.arguments, "-separator -cmd -init -nullvalue")
    files, codes = arguments.operands[:1], arguments.operands[1:] + ([call.stdin] if call.stdin else [])
    doing.read(*files)
    if arguments.has("-readonly", "--readonly", "-version", "--version") or (codes and not any(map(changes, codes))):
        return
    for file in files:
        doing.path("database", file, "file")
        doing.write(file)
