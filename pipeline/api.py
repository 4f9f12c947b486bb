"""kernelproof from Python: `from pipeline import verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.nouns import Problem, Verification, VerifySettings


def verify(
    source: str | Path,
    problem: str | Path | Problem,
    *,
    suite: str | Path | None = None,
    unsafe: bool = False,
    cache: str | Path | None = None,
    **settings: Any,
) -> Verification:
    """Verifies one candidate on this machine and returns everything that was seen. Stores nothing.

    `source` is the candidate's text, or the path of a file that holds it. `problem` is an id or name
    (`level1/2`, `softmax`) of the packaged problems or of `suite`, a path of a problem file, or a Problem.
    `settings` are the fields of `VerifySettings`: `backend`, `size`, `trials`, `measure`,
    `measure_seconds` ...; `backend` is cuda where there is a GPU, else cpp; `size` is full on a GPU,
    and small on a CPU where the problem has a small one.

        verification = verify(Path("relu.py"), "level1/1", backend="cpp", size="small")
        verification.status, verification.measurement.speedup

    What the candidate does wrong is `verification.status`. Raises UsageError for what the caller must
    change, MachineError for what this machine lacks.
    """
    from pydantic import ValidationError

    from pipeline.errors import UsageError
    from pipeline.execution.devices import default_backend
    from pipeline.execution.engine import Engine, require_device
    from pipeline.execution.files import read_text
    from pipeline.execution.sizes import choose_size
    from pipeline.problems import open_suite, read_problem

    if isinstance(problem, Path):
        problem = read_problem(problem)
    elif isinstance(problem, str):
        problem = open_suite(Path(suite) if suite is not None else None).find(problem)
    text = read_text(source) if isinstance(source, Path) else source
    settings.setdefault("backend", default_backend())
    settings["size"] = choose_size(settings.get("size"), settings["backend"], [problem])
    try:
        chosen = VerifySettings(unsafe=unsafe, **settings)
    except ValidationError as error:
        raise UsageError(f"these settings make no sense: {error}") from None
    require_device(chosen.backend)
    with Engine(Path(cache) if cache is not None else None, unsafe=unsafe) as engine:
        return engine.verify(text, problem, chosen)
