#!/bin/sh
# Runs check.py with the pinned packages of requirements.txt.
#
#     run.sh FOLDER [ARGUMENT...]
#
# FOLDER gets a virtual environment, made anew when requirements.txt has
# changed. Without arguments that is all it does.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv=$1
shift

if ! command -v python3 >/dev/null; then
    echo "python3 is missing: install Python 3 with its venv module" \
        "(Debian: apt-get install python3 python3-venv)" >&2
    exit 3
fi
if ! cmp -s "$here/requirements.txt" "$venv/installed.txt"; then
    rm -rf "$venv"
    if ! python3 -m venv "$venv" >&2; then
        echo "python3 has no working venv module: install it" \
            "(Debian: apt-get install python3-venv)" >&2
        exit 3
    fi
    if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        --requirement "$here/requirements.txt" >&2; then
        echo "pip could not install $here/requirements.txt: this test needs PyPI, or a mirror" >&2
        exit 3
    fi
    cp "$here/requirements.txt" "$venv/installed.txt"
fi
if [ $# -gt 0 ]; then
    exec "$venv/bin/python" -u "$here/check.py" "$@"
fi
