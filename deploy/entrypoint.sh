#!/bin/sh
# Runs a command of kernelproof: entrypoint.sh service api ... PGPASSWORD_FILE names a file with the database's
# password, as container engines hand in secrets. No candidate and no referee gets the variable.
set -eu
if [ -n "${PGPASSWORD_FILE:-}" ]; then
    PGPASSWORD=$(cat "$PGPASSWORD_FILE")
    export PGPASSWORD
fi
exec kernelproof "$@"
