#!/bin/sh
# What pip cannot bring: a C++ compiler, and bubblewrap for the strongest sandbox; with `test` also Chromium,
# in which the report is tested, PostgreSQL, on which the database is, and OpenSSH, which signs bundles. Installed where this is Debian (or Ubuntu) and we are root; elsewhere it says
# what to ask for, and kernelproof uses what is there.
set -eu
missing=""
command -v c++ >/dev/null || missing="$missing g++"
command -v bwrap >/dev/null || [ -x "${KERNELPROOF_BWRAP:-}" ] || missing="$missing bubblewrap"
if [ "${1:-}" = test ]; then
    command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ||
        missing="$missing chromium"
    # Debian's package starts a server of the machine's own, unless there is one already: the tests need none.
    command -v postgres >/dev/null || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 ||
        missing="$missing postgresql"
    command -v ssh-keygen >/dev/null || missing="$missing openssh-client"
fi
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    # shellcheck disable=SC2086 # several package names
    if (apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing) >/dev/null 2>&1; then
        exit 0
    fi
fi
echo "not installed:$missing (install with your system's package manager; see kernelproof doctor)" >&2
