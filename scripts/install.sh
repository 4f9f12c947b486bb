#!/bin/sh
# Makes .venv and installs kernelproof into it: scripts/install.sh [EXTRA ...]
#
# Where the interpreter already has a torch (a GPU machine's CUDA build), that one is used instead of
# downloading another: its site-packages are put on the new environment's path. Elsewhere constraints.txt
# picks the one torch that everybody gets. LOCK=tests/lock.txt picks one version of everything else, too.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
venv=.venv
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
here="$venv/bin/python"

if ! "$here" -c 'import torch' 2>/dev/null; then
    found=$("$python" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))' 2>/dev/null || true)
    if [ -n "$found" ]; then
        site=$("$here" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
        echo "$found" > "$site/torch_of_this_machine.pth"
        echo "using the torch in $found"
    fi
fi

# Without any torch, pip would take the newest and gigabytes with it. A torch that is there stays.
constraints=constraints.txt
if "$here" -c 'import torch' 2>/dev/null; then
    constraints=$venv/constraints.txt
    grep -v '^torch==' constraints.txt > "$constraints"
fi

lock=
if [ -n "${LOCK:-}" ]; then
    lock=$venv/lock.txt
    grep -v '^torch==' "$LOCK" > "$lock"
fi

extras=$(echo "$*" | tr ' ' ',')
"$here" -m pip install --quiet --disable-pip-version-check --constraint "$constraints" ${lock:+--constraint "$lock"} -e ".${extras:+[$extras]}"
