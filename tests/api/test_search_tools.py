"""The programs of docs/guide/search-with-other-tools.md in their packages' loops, with a scripted model."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernelproof.db.store import open_store
from kernelproof.workspace import open_workspace
from tests.cli import material
from tests.providers.server import Step, completion, serve

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "search-with-other-tools.md"
STEPS = 20
PACKAGES = {"openevolve": "openevolve", "gepa": "gepa", "shinka": "shinka-evolve"}
ANSWER = """<NAME>
idea
</NAME>
<DESCRIPTION>
Another loop.
</DESCRIPTION>
<CODE>
```python
{source}```
</CODE>"""


def programs(section: str) -> dict[str, str]:
    """The files of a section of the page, by name."""
    text = re.search(rf"^## {section}\S*$(.+?)(?=^## |\Z)", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert text is not None
    files = re.findall(r"^`(\w+\.py)`:\n\n```python\n(.+?)^```$", text[1], re.DOTALL | re.MULTILINE)
    assert "search.py" in dict(files)
    return dict(files)


def answers() -> list[str]:
    """What the model says: faster and slower programs, mistakes, and what it has said before."""
    body = "value = value > 0.0f ? value : 0.0f;"
    right = [material.candidate("k", body, flags=flags) for flags in ((), ("-O3",), ("-O1",))]
    broken = [material.uncompilable(), material.wrong()]
    round_ = [right[0], broken[0], right[1], broken[1], right[2]]
    return round_ * (STEPS // len(round_))


def marked(source: str) -> str:
    return f"# EVOLVE-BLOCK-START\n{source}# EVOLVE-BLOCK-END\n"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("tool", PACKAGES)
def test_twenty_steps_of_its_loop(tool: str, tmp_path: Path, cache: Path) -> None:
    if importlib.util.find_spec(tool) is None:
        pytest.skip(f"needs {PACKAGES[tool]}: pip install 'kernelproof[{tool}]'")
    (tmp_path / "first.py").write_text(marked(material.right()))
    steps = [Step(completion(ANSWER.format(source=marked(source)))) for source in answers()]
    with serve(*steps) as server:
        for name, text in programs(tool).items():
            shorter = text.replace('rigor="quick"', 'rigor="quick", measure_seconds=0.5')
            (tmp_path / name).write_text(shorter.replace("http://localhost:8000/v1", server.url))
        environment = {
            "KERNELPROOF_WORKSPACE": str(tmp_path),
            "KERNELPROOF_CACHE": str(cache),
            "OPENAI_API_KEY": "KEY",
        }
        done = subprocess.run(
            [sys.executable, "search.py"],
            cwd=tmp_path,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-4000:]
    assert len(server.requests) == STEPS
    asked = "".join(str(request["messages"]) for request in server.requests)
    assert "class Model(nn.Module)" in asked  # the problem
    assert "The program is correct." in asked  # the evidence on a program
    with open_store(open_workspace(tmp_path).database) as store:
        kept = [
            state.status for number in store.runs_named(tool) for state in store.attempts_of(number).values()
        ]
    # Each program once, whoever asked for it how often.
    assert sorted(map(str, kept)) == ["build_error", *["correct"] * 4, "wrong_output"]
