"""Write the table of well-known modules and the packages that have them: `pip install guarddog --no-deps`, run this.

A row is the language's installer, the module, and the package if its name differs. guarddog has the names of the most
downloaded packages; what their newest wheels contain is read from PyPI, a few kilobytes of each. The R packages are
those of Debian (`apt-cache`), which build everywhere. It takes a few minutes.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx

TARGET = Path(__file__).parent.parent / "src" / "interpreter" / "runtimes" / "known_packages.txt"
MOST_POPULAR, SCIENTIFIC = 3000, 8000  # by downloads: all of the first, then those for science
NPM_PACKAGES = 600
# Tools and plug-ins of servers, stubs, and parts of other packages: not what a block imports first.
LEFT_OUT = re.compile(
    r"(types|opentelemetry|azure|google|apache-airflow|aws|dbt|mypy|nvidia|pytest|flake8|sphinx|zope|tree-sitter|odoo|"
    r"backports|jaraco|oslo|keystone|pyobjc|snowflake|django|flask|mkdocs|pulumi|llama-index|langchain|jupyter|ipython|"
    r"cuda|mcp|prometheus|msal|kubernetes|botocore|boto|hatch|setuptools|poetry|pip|wheel|twine|uv|ruff|black)-.*|"
    r".*-(stubs|plugin|bin)"
)
# Modules whose package has another name, or which more than one package has.
CHOSEN = dict(
    pair.split(":")
    for pair in """
    cv2:opencv-python-headless PIL:pillow docx:python-docx fitz:pymupdf jwt:pyjwt magic:python-magic serial:pyserial
    Crypto:pycryptodome psycopg2:psycopg2-binary igraph:igraph community:python-louvain umap:umap-learn faiss:faiss-cpu
    telegram:python-telegram-bot dateutil:python-dateutil dotenv:python-dotenv pptx:python-pptx git:gitpython
    skimage:scikit-image sklearn:scikit-learn yaml:pyyaml bs4:beautifulsoup4 attr:attrs mpl_toolkits:matplotlib
    pylab:matplotlib OpenSSL:pyopenssl usb:pyusb zmq:pyzmq slugify:python-slugify Levenshtein:levenshtein tlz:toolz
    nacl:pynacl wx:wxpython snappy:python-snappy ruamel:ruamel.yaml fpdf:fpdf2 pkg_resources:setuptools pywt:pywavelets
    imblearn:imbalanced-learn sksurv:scikit-survival skopt:scikit-optimize ee:earthengine-api
    rest_framework:djangorestframework pythoncom:pywin32 win32api:pywin32 win32com:pywin32 mx:mxnet
    ot:pot websocket:websocket-client absl:absl-py
    """.split()
)
# Less downloaded ones that people who analyze data use.
ALSO = (
    "wordcloud squarify missingno textblob docx2txt odfpy praw tweepy gtts mplfinance pingouin vadersentiment "
    "wikipedia emoji tabula-py pyvis pandasql simpy"
).split()
# Modules of this name are in many packages by mistake.
NOT_MODULES = frozenset(
    "test tests testing example examples doc docs src scripts tools bench benchmark benchmarks build dist utils util "
    "common core config setup conftest data lib bin samples demo app main version plugins fixtures".split()
)


class RemoteFile(io.RawIOBase):
    """A file on a web server, read in parts."""

    def __init__(self, client: httpx.Client, url: str, size: int) -> None:
        self._client, self._url, self._size, self._at = client, url, size, 0

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        last = self._size - 1 if size < 0 else min(self._at + size, self._size) - 1
        if last < self._at:
            return b""
        answer = self._client.get(self._url, headers={"Range": f"bytes={self._at}-{last}"}).raise_for_status()
        self._at = last + 1
        return answer.content


def modules_of(client: httpx.Client, place: int, package: str) -> list[str]:
    """List the modules in the newest wheel of a package; none if it has no wheel, or is not for data analysis."""
    try:
        answer = client.get(f"https://pypi.org/pypi/{package}/json").raise_for_status()
        details: dict[str, Any] = answer.json()
        topics = " ".join(details["info"]["classifiers"])
        if (
            place >= MOST_POPULAR
            and package not in ALSO
            and not re.search("Science/Research|Scientific/Engineering|Visualization", topics)
        ):
            return []
        wheels = [file for file in details["urls"] if file["packagetype"] == "bdist_wheel"]
        if not wheels:
            return []
        wheel = min(wheels, key=lambda file: file["size"])
        with zipfile.ZipFile(RemoteFile(client, str(answer.url.join(wheel["url"])), wheel["size"])) as archive:
            names = [name.split("/") for name in archive.namelist()]
    except (httpx.HTTPError, zipfile.BadZipFile, OSError, ValueError, KeyError) as error:
        print(f"{package}: {error}", file=sys.stderr)
        return []
    packages = {parts[0] for parts in names if len(parts) == 2 and re.match(r"__init__\.(py|.*so|pyd)$", parts[1])}
    single = {
        parts[0].partition(".")[0] for parts in names if len(parts) == 1 and parts[0].endswith((".py", ".so", ".pyd"))
    }
    return sorted(name for name in packages | single if re.fullmatch(r"[A-Za-z]\w*", name))


def python_rows(popular: list[str]) -> dict[str, str]:
    numbered = enumerate(popular)
    kept = [(at, name) for at, name in numbered if name in ALSO or (at < SCIENTIFIC and not LEFT_OUT.fullmatch(name))]
    places, chosen = zip(*kept, strict=True)
    rows: dict[str, str] = {}
    with httpx.Client(timeout=60, follow_redirects=True) as client, ThreadPoolExecutor(16) as pool:
        for package, modules in zip(chosen, pool.map(partial(modules_of, client), places, chosen), strict=True):
            for module in modules:
                plain, whole = module.replace("_", "").lower(), re.sub("[-_.]", "", package).lower()
                is_its_own = plain in whole or whole in plain  # other modules are in a wheel by mistake, or private
                if is_its_own and module not in sys.stdlib_module_names and module.lower() not in NOT_MODULES:
                    rows.setdefault(module, package)
    return {**rows, **CHOSEN}


def r_rows() -> dict[str, str]:
    listing = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout
    return dict.fromkeys(
        re.findall(r"(?m)^Homepage:.*cran\.r-project\.org/(?:web/packages/|package=)([\w.]+)", listing), ""
    )


def main() -> None:
    spec = find_spec("guarddog")
    assert spec is not None and spec.origin is not None, "pip install guarddog --no-deps"
    lists = Path(spec.origin).parent / "analyzer" / "metadata" / "resources"
    popular = json.loads((lists / "top_pypi_packages.json").read_text("utf-8"))["packages"]
    npm = json.loads((lists / "top_npm_packages.json").read_text("utf-8"))
    npm = npm["packages"] if isinstance(npm, dict) else npm
    lines = [
        f"pip {module} {package}" if module != package else f"pip {module}"
        for module, package in python_rows(popular).items()
    ]
    lines += [f"npm {name}" for name in npm[:NPM_PACKAGES] if not name.startswith("@types/")]
    lines += [f"r {name}" for name in r_rows()]
    TARGET.write_text("\n".join(sorted(lines, key=str.lower)) + "\n", "utf-8")
    print(f"{len(lines)} rows")


if __name__ == "__main__":
    main()
