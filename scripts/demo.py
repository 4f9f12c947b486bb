"""`make demo`: recorded answers, extracted, compiled, checked, timed, stored and ranked on this machine.

With a CUDA GPU the candidates are CUDA at full size; without one they are C++ at small size.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kernelproof.backends import backend
from kernelproof.providers import ReplayProvider
from kernelproof.verifier.devices.discovery import default_backend

COMMAND = str(Path(sys.executable).with_name("kernelproof"))
LEFT_OUT = ("level1/3", "level2/1", "level2/3")
"""Left out on a CPU, so that it takes five minutes. At level1/3 and level2/3 the answers take the reference's
time, within 6 %, and two cores do not tell in seconds which is faster: docs/rationale/measurement.md."""


def main() -> int:
    """Runs the commands a user would, and says which to try next."""
    name = default_backend()
    on_gpu = backend(name).on_gpu
    asked = {key.problem: None for key in ReplayProvider("demo").questions() if key.backend == name}
    problems = [problem for problem in asked if on_gpu or problem not in LEFT_OUT]
    exact = ("--seconds", "3") if on_gpu else ("--seconds", "6", "--rigor", "quick")
    each = ("--samples", "2", "--turns", "2", *exact)
    print("The first build takes up to a minute: what joins kernels to torch is compiled once, and kept.")
    run("generate", *problems, "--model", "replay:demo", *each)
    run("leaderboard", "--backend", name)
    database = Path("db/attempts.sqlite").resolve()
    print(f"\nEvery attempt is in {database}. Try next:\n")
    print("\n".join(next_steps(name)))
    return 0


def next_steps(name: str) -> list[str]:
    """Lines with a command each, for the backend `name`. All but the last run as they are."""
    example = f"verify prompts/examples/{name}.py --problem prompts/examples/model.py"
    steps = {
        "show 1": "prompt, answer, source, compiler, every check",
        "report": "all results as a page, report.html",
        "serve": "the same in a browser, live",
        "reproduce last": "anybody's number, checked again",
        "doctor": "what works on this machine",
        example: "one kernel",
    }
    lines = [f"  .venv/bin/kernelproof {command:28}  {what}" for command, what in steps.items()]
    asking = ".venv/bin/kernelproof generate level1 --model openai:MODEL --samples 4"
    return [*lines, f"  OPENAI_API_KEY=... {asking}"]


def run(*arguments: str) -> None:
    """Shows and runs one command; ends with its exit code when it fails."""
    print(f"\n$ kernelproof {' '.join(arguments)}", flush=True)
    done = subprocess.run([COMMAND, *arguments], check=False)
    if done.returncode:
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()
