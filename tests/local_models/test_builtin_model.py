"""The built-in model: which file it uses, and the errors when it can't run."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from interpreter import OpenInterpreter
from interpreter.errors import EngineError, WeightsMissingError
from interpreter.llm.providers import calls_tools
from interpreter.local_models import engine
from interpreter.local_models.weights import WEIGHTS, file_of, is_here, model_string, models_folder, own_files
from scripted_llm import HELLO, SYSTEM

needs_engine = pytest.mark.skipif(find_spec("xllamacpp") is None, reason="pip install xllamacpp")


def make(path: Path, content: bytes = b"GGUF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_a_model_that_was_not_downloaded_says_how_to_get_it() -> None:
    interpreter = OpenInterpreter()
    interpreter.llm.model = "builtin/qwen2.5-coder-1.5b"
    with pytest.raises(WeightsMissingError, match=r"1\.1 GB.*interpreter --local"):
        list(interpreter.llm.reply([SYSTEM, HELLO]))


def test_an_unknown_name_lists_the_available_models() -> None:
    with pytest.raises(WeightsMissingError, match=r"qwen2\.5-coder-1\.5b.*GGUF"):
        file_of("nonsense")


def test_custom_files_are_found_by_path_or_in_the_models_folder(home: Path) -> None:
    mine = make(home / "my.gguf")
    assert file_of(str(mine)) == mine
    assert file_of("~/my.gguf") == mine
    kept = make(models_folder() / "kept.gguf")
    assert file_of("kept.gguf") == file_of("kept") == kept
    assert list(own_files()) == [kept]
    assert model_string(mine) == f"builtin/{mine}"


def test_a_partial_download_does_not_count() -> None:
    row = WEIGHTS[0]
    make(models_folder() / row.file)
    assert not is_here(row)
    with pytest.raises(WeightsMissingError):
        file_of(row.name)
    assert list(own_files()) == []


def test_without_the_engine_the_error_gives_the_install_command(home: Path) -> None:
    code = (
        "import sys; sys.modules['xllamacpp'] = None\n"
        "from pathlib import Path; from interpreter.local_models import engine\n"
        "try: engine.start(Path(sys.argv[1]))\n"
        "except engine.EngineError as error: print(error)"
    )
    argv = [sys.executable, "-c", code, str(make(home / "x.gguf"))]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert f"{sys.executable} -m pip install xllamacpp" in said


@needs_engine
@pytest.mark.usefixtures("no_strays")
def test_files_the_engine_cannot_load_raise_an_error(home: Path) -> None:
    with pytest.raises(EngineError, match="No such file"):
        engine.start(home / "none.gguf")
    with pytest.raises(EngineError, match="not a GGUF file"):
        engine.start(make(home / "text.gguf", b"hello"))
    with pytest.raises(EngineError, match=r"could not load broken\.gguf"):
        engine.start(make(home / "broken.gguf", b"GGUF\x03\0\0\0 and then nonsense" * 50))


def test_builtin_models_get_no_tools() -> None:
    assert not calls_tools("builtin/qwen2.5-coder-1.5b")
    assert not calls_tools("builtin/~/llama-3.1-8b.gguf")
