"""Real models for the marked tests, from a cache folder that `scripts/fetch_test_models.py` fills."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))

from fetch_test_models import MODELS, models_folder

# Read now, because tests get their own home folder.
FOLDER = models_folder()


def weights(name: str) -> Path:
    """Return the file of a test model; skip the test where it is not available."""
    if find_spec("xllamacpp") is None:
        pytest.skip("the engine is not installed: pip install xllamacpp")
    row = MODELS[name]
    file = FOLDER / row.file
    if not file.is_file() or file.stat().st_size != row.size:
        pytest.skip(f"no {file}: run `python scripts/fetch_test_models.py {name}`")
    return file
