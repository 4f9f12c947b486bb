"""What cannot be is said in a message before anything is asked, run or stored."""

from __future__ import annotations

import json

import pytest

from tests.cli import material
from tests.cli.program import Program

VERIFY = "verify --backend cpp --suite problems"
IMPORT = "import --backend cpp"
GENERATE = (
    "generate level1/1 --suite problems --backend cpp --model openai:m --base-url http://127.0.0.1:9/v1"
)
MISTAKES = {
    f"{VERIFY} right.py": "which problem is right.py for? give --problem",
    f"{VERIFY} bytes.py --problem relu": "bytes.py is not a text file in UTF-8",
    f"{VERIFY} right.py --problem rellu": "did you mean relu (level1/1)?",
    f"{VERIFY} right.py --problem level1": "'level1' stands for 2 problems, and one is",
    f"{VERIFY} right.py --problem level9": "its folders are level1",
    f"{VERIFY} right.py --problem level1/*": "name it, as level1/1 or relu",
    f"{VERIFY} right.py --problem .": "it is a folder: give it as --suite ., and",
    f"{VERIFY} right.py --problem ~no-such-user/x.py": "there is no such file",
    f"{VERIFY} right.py --problem {'x' * 300}": "problems list` shows what there is",
    f"{VERIFY} {'x' * 300} --problem relu": "cannot be used: File name too long",
    f"{VERIFY} ~no-such-user/x.py --problem relu": "~no-such-user/x.py",
    f"{VERIFY} right.py --problem relu --baseline compile --no-measure": "--baseline is for measuring; leave",
    f"{VERIFY} right.py --problem relu --purity own-compute --no-own-kernel": "asks for kernels of its own",
    f"{VERIFY} bad.jsonl": "(of 3 in all); nothing was run\n  line 2: not JSON",
    f"{VERIFY} cuda.jsonl": "recorded for cuda, and this would verify cpp",
    "verify right.py --problem relu --suite gone": "gone does not exist",
    "verify right.py --problem relu --suite ~no-such-user": "does not exist",
    "verify empty --workspace . --problem relu": "empty holds no candidates",
    f"{IMPORT} gone": "gone does not exist; give a folder or a .jsonl file",
    f"{IMPORT} right.py": "right.py is one file: kernelproof verify takes it",
    f"{IMPORT} empty --suite problems": "empty holds no programs",
    f"{IMPORT} empty --model=": "'--model': it is empty",
    f"{GENERATE} --param top_p=0.9 --param top_p=0.8": "--param top_p was given twice (0.9 and 0.8)",
    f"{GENERATE} --param temperature=-1": "temperature must be 0 or more, not -1",
    f"{GENERATE} --param own=NaN": "own must be finite, and is not",
    f"{GENERATE} --param own=1e400": "own must be finite, and is not",
    f"{GENERATE} --temperature 1 --param temperature=1": "temperature is given twice",
    f"{GENERATE} --model openai:m": "the model openai:m is there twice; give each model once",
    f"{GENERATE} --config run.toml": "--baseline must be compile or max-autotune, not 'compiled'",
    "generate relu --model replay:~no-such-user/x.jsonl": "~no-such-user/x.jsonl",
    "problems prompt relu --template ~no-such-user/mine": "~no-such-user/mine",
    "problems import . --to new --column code=a --column code=b": "--column code was given 2 times",
    "problems list --level 7 --suite problems": "has no problems of level 7; its levels are 1",
    "leaderboard --workspace ~no-such-user": "does not exist; generate, verify, import and tune create it",
    "leaderboard": "make some first: kernelproof generate",
    "show": "make some first: kernelproof generate",
    "reproduce last": "make some first: kernelproof generate",
    "reproduce bytes.py": "it is not a zip file",
    "reproduce 17a": "names no attempt, and there is no such file",
    "reproduce bytes.py --list --json": "--list and --json exclude each other",
    "reproduce 1 --list": "--list is for bundles",
}


@pytest.mark.few(15)
@pytest.mark.parametrize("line", MISTAKES, ids=lambda line: line[:80])
def test_it_is_said_and_nothing_is_stored(program: Program, line: str) -> None:
    here = program.workspace
    material.problems(here / "problems")
    (here / "empty").mkdir()
    (here / "right.py").write_text(material.right())
    (here / "bytes.py").write_bytes(b"\xff\xfe\x00")
    (here / "run.toml").write_text('[verify]\nbaseline = "compiled"\n')
    candidate = {"problem": "relu", "source": "x"}
    (here / "bad.jsonl").write_text(f"{json.dumps(candidate)}\n{{\n{json.dumps({'problem': 'relu'})}\n")
    (here / "cuda.jsonl").write_text(json.dumps({**candidate, "backend": "cuda"}))
    done = program.run(*line.split(), code=2)
    assert MISTAKES[line] in done.stderr and done.stdout == "" and done.stderr.startswith("kernelproof: ")
    assert not (here / "db").exists()


def test_on_a_terminal_lines_end_between_words(program: Program) -> None:
    command = ("leaderboard", "--by", "modl")
    code, seen = program.on_terminal(*command, columns=60)
    lines = seen.splitlines()
    assert code == 2 and len(lines) == 3 and max(map(len, lines)) <= 60
    assert " ".join(lines) == program.run(*command, code=2).stderr.rstrip()


def test_no_line_of_help_is_too_long(program: Program) -> None:
    program.extra = {"COLUMNS": "80"}
    for command in ("leaderboard", "report", "verify", "generate", "tune"):
        long = [line for line in program.run(command, "--help").stdout.splitlines() if len(line) > 80]
        assert long == [], command


def test_a_field_on_the_command_line_takes_the_place_of_an_option_in_the_file(program: Program) -> None:
    material.problems(program.workspace / "problems")
    (program.workspace / "run.toml").write_text("temperature = 0.5\n[params]\nmax_completion_tokens = 7\n")
    more = "--config run.toml --param temperature=1 --max-tokens 8 --dry-run"
    program.run(*f"{GENERATE} {more}".split())
