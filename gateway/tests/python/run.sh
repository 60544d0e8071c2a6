#!/bin/sh
# Runs a Python script with the packages that the requirements.txt beside it pins.
#
#     run.sh SCRIPT FOLDER [ARGUMENT...]
#
# FOLDER gets a virtual environment, made anew when requirements.txt has
# changed. Without arguments that is all it does.
set -eu
script=$1
venv=$2
shift 2
pinned=$(dirname "$script")/requirements.txt

if ! command -v python3 >/dev/null; then
    echo "python3 is missing: install Python 3 with its venv module" \
        "(Debian: apt-get install python3 python3-venv)" >&2
    exit 3
fi
if ! cmp -s "$pinned" "$venv/installed.txt"; then
    rm -rf "$venv"
    if ! python3 -m venv "$venv" >&2; then
        echo "python3 has no working venv module: install it" \
            "(Debian: apt-get install python3-venv)" >&2
        exit 3
    fi
    if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        --requirement "$pinned" >&2; then
        echo "pip could not install $pinned: this test needs PyPI, or a mirror" >&2
        exit 3
    fi
    cp "$pinned" "$venv/installed.txt"
fi
if [ $# -gt 0 ]; then
    exec "$venv/bin/python" -u "$script" "$@"
fi
