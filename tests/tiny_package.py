"""A package without dependencies, as a wheel: installed from a path, it needs no network."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path


def wheel(name: str = "tiny_thing", version: str = "1.0", source: str = "answer = 42\n") -> bytes:
    """Build a wheel with one module."""
    made, info = io.BytesIO(), f"{name}-{version}.dist-info"
    with zipfile.ZipFile(made, "w") as file:
        file.writestr(f"{name}.py", source)
        file.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n"
        )
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return made.getvalue()


def write_wheel(folder: Path, name: str = "tiny_thing", version: str = "1.0", source: str = "answer = 42\n") -> Path:
    path = folder / f"{name}-{version}-py3-none-any.whl"
    path.write_bytes(wheel(name, version, source))
    return path
