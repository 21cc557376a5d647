"""Real models for the marked tests: found in a cache folder, which `scripts/fetch_test_models.py` fills."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))

from fetch_test_models import MODELS, models_folder

# Read now: tests get a home of their own.
FOLDER = models_folder()


def weights(name: str) -> Path:
    """The file of a test model; the test is skipped, with the reason, where it cannot be had."""
    if find_spec("xllamacpp") is None:
        pytest.skip("the engine is not installed: pip install xllamacpp")
    row = MODELS[name]
    file = FOLDER / row.file
    if not file.is_file() or file.stat().st_size != row.size:
        pytest.skip(f"no {file}: run `python scripts/fetch_test_models.py {name}`")
    return file
