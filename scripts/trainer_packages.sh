#!/usr/bin/env bash
# Asks for rewards by the real packages of trainers: installs each in a virtual environment of its own, since they
# exclude each other, and runs tests/trainers. Needs .venv (make test makes it) and minutes.
#
# scripts/trainer_packages.sh [FOLDER]     the environments stay in FOLDER; without one, in a temporary folder
#                                          that is removed
set -u
cd "$(dirname "$0")/.." || exit 1
base=$PWD/.venv/bin/python
[ -x "$base" ] || { echo "there is no .venv: run make test first" >&2; exit 2; }
if [ $# -gt 0 ]; then
    mkdir -p "$1" && folder=$(cd "$1" && pwd) || exit 2
else
    folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
fi

# What .venv has need not be installed again: an environment finds it behind its own packages.
environment() {
    local place=$folder/$1
    [ -x "$place/bin/python" ] && return
    "$base" -m venv "$place" &&
        "$base" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
            >"$("$place/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/base.pth"
}

# install NAME PACKAGE... -- PACKAGE...   those behind -- come without what they depend on, which is CUDA's.
install() {
    local name=$1 usual=() alone=() into=usual
    shift
    for each in "$@"; do
        if [ "$each" = -- ]; then into=alone; elif [ $into = alone ]; then alone+=("$each"); else usual+=("$each"); fi
    done
    [ -e "$folder/$name/installed" ] && return
    echo "$name ..."
    environment "$name" || { echo "$name: no environment"; return; }
    local pip=("$folder/$name/bin/python" -m pip install --quiet)
    if { [ ${#usual[@]} = 0 ] || "${pip[@]}" "${usual[@]}"; } >"$folder/$name.log" 2>&1 &&
        { [ ${#alone[@]} = 0 ] || "${pip[@]}" --no-deps --ignore-requires-python "${alone[@]}"; } >>"$folder/$name.log" 2>&1; then
        touch "$folder/$name/installed"
    else
        echo "$name was not installed:"
        grep -v WARNING "$folder/$name.log" | tail -3
    fi
}

hydra=(omegaconf hydra-core antlr4-python3-runtime==4.9.3)
install trl trl
install verl aiohttp -- verl 'tensordict<=0.10' "${hydra[@]}" codetiming ray pylatexenc orjson pyvers cloudpickle torchdata msgpack click
install openrlhf aiohttp pylatexenc sympy -- openrlhf
install verifiers verifiers
install verifiers-rubric verifiers==0.1.14
install skyrl-gym skyrl-gym
install openenv openenv
install openenv-core openenv-core
install nemo-gym 'openai<=2.7.2' itsdangerous uvloop aiohttp yappi gprof2dot pydot devtools python-multipart GitPython ray orjson hydra-core -- nemo-gym==0.4.0 wandb
install kernelgym aiohttp -- verl==0.7.0 'tensordict<=0.10' "${hydra[@]}" ray pyvers cloudpickle httpx httpcore
if [ -e "$folder/kernelgym/installed" ] && [ ! -d "$folder/kernelgym/source" ]; then
    git clone --quiet --depth 1 https://github.com/hkust-nlp/KernelGYM "$folder/kernelgym/source" ||
        rm "$folder/kernelgym/installed"
fi
KERNELPROOF_TRAINERS=$folder "$base" -m pytest tests/trainers -rs
