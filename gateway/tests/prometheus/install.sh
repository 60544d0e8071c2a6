#!/bin/sh
# Prints where `prometheus` and `promtool` are: those of this system, or else
# Debian's package, unpacked below the folder given and not installed.
set -eu
if command -v prometheus >/dev/null && command -v promtool >/dev/null; then
    dirname "$(command -v prometheus)"
    exit
fi
binaries="$1/package/usr/bin"
if [ ! -x "$binaries/promtool" ]; then
    mkdir -p "$1"
    cd "$1"
    fetch() { apt-get download -qq prometheus >&2; }
    # The list of packages may be missing or old.
    fetch || { apt-get update -qq >&2 && fetch; } || {
        echo "Prometheus is missing: install its programs prometheus and promtool" >&2
        exit 1
    }
    rm -rf unpacked
    dpkg-deb -x prometheus_*.deb unpacked
    rm -rf package prometheus_*.deb
    mv unpacked package
fi
echo "$binaries"
