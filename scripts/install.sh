#!/bin/sh
# install.sh chat|dev: creates .venv, even if python3-venv is missing or pip refuses to change the system.
# `chat` installs the package, the built-in model's engine and what images in the terminal need; `dev` adds everything for development.
set -eu
cd "$(dirname "$0")/.."

fits='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))'

find_python() {
    for name in ${PYTHON:-} python3.14 python3.13 python3.12 python3.11 python3 python; do
        if command -v "$name" >/dev/null 2>&1 && "$name" -c "$fits" 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    echo "Python 3.11 to 3.14 is needed and none was found. On Debian: apt-get install python3" >&2
    return 1
}

works() { .venv/bin/python -m pip --version >/dev/null 2>&1; }

# Each method creates .venv with pip; if it fails, the next one is tried.
with_ensurepip() { "$python" -c 'import ensurepip' 2>/dev/null && "$python" -m venv --clear .venv; }
with_own_pip() {
    "$python" -m venv --clear --without-pip .venv && "$python" -m pip --python .venv/bin/python install --quiet pip
}
with_virtualenv() {
    rm -rf .venv && "$python" -m pip install --quiet --target .venv.tools virtualenv &&
        PYTHONPATH=.venv.tools "$python" -m virtualenv --quiet .venv
}

make_venv() {
    for way in with_ensurepip with_own_pip with_virtualenv; do
        if "$way" >.venv.log 2>&1 && works; then
            rm -rf .venv.log .venv.tools
            return
        fi
    done
    cat .venv.log >&2
    rm -rf .venv.log .venv.tools
    echo "No virtual environment could be made with $python. On Debian: apt-get install python3-pip python3-venv" >&2
    return 1
}

if ! { .venv/bin/python -c "$fits" 2>/dev/null && works; }; then
    python=$(find_python)
    echo "Making .venv with $python"
    make_venv
fi
pip_install() { .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable "$1"; }
if [ "${1:-dev}" = chat ]; then
    echo "Installing Open Interpreter into .venv"
    pip_install '.[local,images]'
else
    echo "Installing Open Interpreter and its development tools into .venv"
    pip_install '.[dev]'
    touch .venv/.installed
fi
touch .venv/.chat
