#!/bin/sh
# Prints where `nats-server` is: that of this system, or else Debian's package,
# unpacked below the folder given and not installed.
set -eu
PATH=$PATH:/usr/sbin
if command -v nats-server >/dev/null; then
    command -v nats-server
    exit
fi
binary="$1/package/usr/sbin/nats-server"
if [ ! -x "$binary" ]; then
    mkdir -p "$1"
    cd "$1"
    fetch() { apt-get download -qq nats-server >&2; }
    # The list of packages may be missing or old.
    fetch || { apt-get update -qq >&2 && fetch; } || {
        echo "NATS is missing: install its program nats-server" >&2
        exit 1
    }
    rm -rf unpacked
    dpkg-deb -x nats-server_*.deb unpacked
    rm -rf package nats-server_*.deb
    mv unpacked package
fi
echo "$binary"
