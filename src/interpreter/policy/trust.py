"""A project's own rules: they count only after the user has trusted just this text in just this folder."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from interpreter.errors import PolicyError
from interpreter.policy.files import config_folder, project_file
from interpreter.policy.save import write_whole

STORE = "trusted-policies.json"
_LARGEST = 200_000


@dataclass(frozen=True)
class ProjectRules:
    """A project's policy file as it was read, and whether it is trusted."""

    folder: str
    path: Path
    text: str
    digest: str
    trusted: bool = False

    @property
    def lines(self) -> list[str]:
        """What the user should see before trusting it: what would be allowed first, or what is wrong with it."""
        from interpreter.policy.read import read_text

        try:
            rules = read_text(self.text, str(self.path), self.folder).rules
        except PolicyError as error:
            return [str(error)]
        order = sorted(rules, key=lambda rule: rule.decision != "allow")
        return [f"{rule}{f' ({rule.reason})' if rule.reason else ''}" for rule in order]


def project_rules(folder: str, config: Path) -> ProjectRules | None:
    """The project's file, if it has one."""
    path = project_file(folder)
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError:
        return None
    digest = hashlib.sha256(data).hexdigest()
    trusted = len(data) <= _LARGEST and _stored(config / STORE).get(folder) == digest
    return ProjectRules(folder, path, data.decode("utf-8", "replace"), digest, trusted)


def trust(project: ProjectRules) -> None:
    """Remember that the user trusts this text in this folder."""
    store = config_folder() / STORE
    stored = _stored(store) | {project.folder: project.digest}
    write_whole(store, json.dumps(stored, indent=1, sort_keys=True) + "\n")


def _stored(path: Path) -> dict[str, str]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # what cannot be read is trusted by nobody
    return stored if isinstance(stored, dict) else {}
