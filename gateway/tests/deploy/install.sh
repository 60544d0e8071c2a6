#!/bin/sh
# Makes the virtual environment FOLDER with the validators of requirements.txt, anew when
# that has changed.
#
#     install.sh FOLDER
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv=$1
if cmp -s "$here/requirements.txt" "$venv/installed.txt"; then
    exit
fi
rm -rf "$venv"
if ! python3 -m venv "$venv" >&2; then
    echo "python3 is missing, or has no working venv module: install it" \
        "(Debian: apt-get install python3 python3-venv)" >&2
    exit 3
fi
if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --requirement "$here/requirements.txt" >&2; then
    echo "pip could not install $here/requirements.txt: this test needs PyPI, or a mirror" >&2
    exit 3
fi
cp "$here/requirements.txt" "$venv/installed.txt"
