"""The recipes in deploy/ parse, and use only flags and variables that exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from interpreter.config.settings import SETTINGS
from interpreter.frontends.flags import COMMANDS
from interpreter.frontends.server.application import KEY_VARIABLE

DEPLOY = Path(__file__).parents[2] / "deploy"
FLAGS = {row.flag for row in SETTINGS} | {row.flag for row in COMMANDS}
VARIABLES = {row.env for row in SETTINGS if row.env} | {KEY_VARIABLE}


def compose() -> Any:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["interpreter"]


def cluster() -> list[Any]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))


def instructions() -> dict[str, str]:
    text = re.sub(r"\\\n", " ", (DEPLOY / "Dockerfile").read_text())
    rows = [line.partition(" ") for line in text.splitlines() if line and not line.startswith("#")]
    return {name: rest.strip() for name, _, rest in rows}  # the last one of each name counts


def unit() -> dict[str, str]:
    lines = (DEPLOY / "interpreter@.service").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def test_every_flag_and_variable_exists() -> None:
    container = cluster()[0]["spec"]["template"]["spec"]["containers"][0]
    commands = [
        json.loads(instructions()["ENTRYPOINT"]),
        compose()["command"],
        unit()["ExecStart"].split(),
        container["args"],
    ]
    used = {word for command in commands for word in command if word.startswith("--")}
    assert {"--serve", "--host", "--server_names", "--server_without_tls"} <= used <= FLAGS
    everything = "".join(path.read_text() for path in DEPLOY.iterdir())
    assert set(re.findall(r"INTERPRETER_[A-Z_]+", everything)) <= VARIABLES


def test_nothing_is_open_to_other_machines_by_default() -> None:
    assert all(port.startswith("127.0.0.1:") for port in compose()["ports"])
    assert "--host" not in unit()["ExecStart"], "the unit listens on this machine only"
    assert {each["kind"] for each in cluster()} == {"StatefulSet", "Service", "Ingress", "NetworkPolicy"}
    assert "type" not in cluster()[1]["spec"], "the service is for the cluster only"


def test_no_recipe_runs_as_root_or_can_become_root() -> None:
    assert instructions()["USER"] == "10001:10001"
    assert compose()["cap_drop"] == ["ALL"] and compose()["read_only"] is True
    pod = cluster()[0]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"]
    assert pod["containers"][0]["securityContext"]["allowPrivilegeEscalation"] is False
    assert unit()["User"] == "%i" and unit()["NoNewPrivileges"] == "yes"


def test_the_proxy_forwards_the_headers_the_gate_needs() -> None:
    proxy = (DEPLOY / "nginx.conf").read_text()
    for line in ("proxy_set_header Host $host;", "proxy_set_header X-Forwarded-Proto $scheme;", "proxy_buffering off;"):
        assert line in proxy
    assert "$request_uri" not in proxy and "$args" not in proxy, "the query of a link contains a token"


@pytest.mark.full
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_reads_the_unit(tmp_path: Path) -> None:
    copy = tmp_path / "interpreter@.service"
    copy.write_text((DEPLOY / copy.name).read_text().replace("/opt/interpreter/bin/interpreter", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False)
    assert copy.name.replace("@", "@i") not in done.stderr, done.stderr
