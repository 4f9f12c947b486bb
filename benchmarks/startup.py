"""How long `kernelproof --help` takes: ``python -m benchmarks.startup``.

Beside it stands a Python that does nothing, the part that is not ours. Says which of the heavy
libraries the command imports. Measures; asserts nothing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks.measuring import kernelproof, print_timings, time_process, write_result

HEAVY = ("torch", "sqlalchemy", "alembic", "openai", "pydantic", "jinja2", "rich")
LIST_IMPORTS = (
    "import sys; sys.argv = ['kernelproof', '--help']\n"
    "from kernelproof.cli.app import main\n"
    "try: main()\n"
    f"finally: print(*[name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--output", type=Path, default=Path("generated/benchmarks/startup.json"))
    options = parser.parse_args()
    timings = [
        time_process("python -c pass", (sys.executable, "-c", "pass"), options.runs),
        time_process("kernelproof --help", kernelproof("--help"), options.runs),
    ]
    print_timings(timings)
    done = subprocess.run([sys.executable, "-c", LIST_IMPORTS], capture_output=True, text=True, check=True)
    imported = done.stderr.split()
    print(f"imported of {', '.join(HEAVY)}: {', '.join(imported) or 'none'}")
    write_result(options.output, timings, imported=imported)


if __name__ == "__main__":
    main()
