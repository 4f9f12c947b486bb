"""The names that are stored or promised, as the code has them: a collector for each part of `names.json`."""

from __future__ import annotations

import ast
import importlib
import re
import sqlite3
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from typer.main import get_command

from kernelproof import errors, types
from kernelproof.analysis.bottleneck import Limit
from kernelproof.backends import BACKENDS
from kernelproof.choices import Baseline, Numerics, Purity, RewardName, Role, RunKind, words_of
from kernelproof.cli.app import command_line
from kernelproof.cli.options import INTERRUPTED
from kernelproof.db.evaluations import State
from kernelproof.db.gpus import GpuState
from kernelproof.db.models import APPEND_ONLY
from kernelproof.db.store import open_store
from kernelproof.db.views import VerificationKind
from kernelproof.extraction import WARNINGS
from kernelproof.prompting import list_templates
from kernelproof.providers.protocol import PROVIDERS
from kernelproof.runs.events import Phase
from kernelproof.runs.strategies.protocol import STRATEGIES
from kernelproof.types import Status
from kernelproof.types.problem import Unfit
from kernelproof.verifier import status_rules
from kernelproof.verifier.policy import RULES
from kernelproof.verifier.referee.plan import PLAN
from kernelproof.verifier.sandbox.model import Tier
from kernelproof.verifier.status_rules import CheckKind

ROOT = Path(__file__).parents[2]
DOCS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LISTS: dict[str, Any] = {
    "backends": BACKENDS.ours(),
    "baselines": words_of(Baseline),
    "bottlenecks": words_of(Limit),
    "build routes": words_of(types.Route),
    "build states": words_of(types.BuildState),
    "check outcomes": words_of(types.CheckOutcome),
    "determinism": words_of(types.Determinism),
    "error classes": words_of(types.ErrorClass),
    "evaluation states": words_of(State),
    "evidence tables": APPEND_ONLY,
    "extraction warnings": WARNINGS,
    "flags": words_of(types.Flag),
    "gpu states": words_of(GpuState),
    "numerics": words_of(Numerics),
    "origins of kernels": words_of(types.Origin),
    "paces": words_of(types.Pace),
    "phases of events": words_of(Phase),
    "policy rules": [rule.name for rule in RULES],
    "providers": PROVIDERS.ours(),
    "purities": words_of(Purity),
    "reproduction findings": words_of(types.ReproductionFinding),
    "rewards": words_of(RewardName),
    "rigors": words_of(types.Rigor),
    "roles": words_of(Role),
    "run kinds": words_of(RunKind),
    "sandbox tiers": words_of(Tier),
    "severities": words_of(types.Severity),
    "stages of a verification": [stage.name for stage in PLAN],
    "strategies": STRATEGIES.ours(),
    "templates": [template.name for template in list_templates()],
    "unfit problems": words_of(Unfit),
    "verification kinds": words_of(VerificationKind),
}
"""Closed vocabularies."""


def lists() -> dict[str, list[str]]:
    """Every vocabulary, sorted."""
    return {name: sorted({str(word) for word in words}) for name, words in LISTS.items()}


def statuses() -> dict[str, dict[str, Any]]:
    """Each status with its stage, and whether it counts against a model."""
    return {
        str(status): {"stage": str(status.stage), "counts": status.counts_against_model} for status in Status
    }


def exit_codes() -> dict[str, int]:
    """Each error that reaches a user, with the exit code of its process."""
    known = _all_subclasses(errors.KernelproofError)
    return {kind.__name__: kind.exit_code for kind in known} | {"Ctrl-C": INTERRUPTED}


def _all_subclasses(kind: type[errors.KernelproofError]) -> Iterator[type[errors.KernelproofError]]:
    if kind.__module__ == errors.__name__:
        yield kind
    for below in kind.__subclasses__():
        yield from _all_subclasses(below)


def check_names() -> list[str]:
    """The names of checks that the referee writes; a detail follows those that end in a space."""
    kinds = {name: each for name, each in vars(status_rules).items() if isinstance(each, CheckKind)}
    sources = "".join(path.read_text() for path in (ROOT / "pipeline" / "verifier" / "referee").rglob("*.py"))
    detailed = set(re.findall(r"\b([A-Z_]+)\.of\(", sources)) & kinds.keys()
    again = set(re.findall(r"\b([A-Z_]+)\.again\(", sources)) & kinds.keys()
    more = [kinds[name].of("").name for name in detailed] + [kinds[name].again().name for name in again]
    return sorted([*(each.name for each in kinds.values()), *more])


def commands() -> dict[str, list[str]]:
    """Every command with its arguments and the names of its options."""
    return dict(sorted(_commands("kernelproof", get_command(command_line()))))


def _commands(name: str, command: Any) -> Iterator[tuple[str, list[str]]]:
    parameters = (word for each in command.params for word in (*each.opts, *each.secondary_opts))
    yield name, sorted(parameters)
    for inner, below in getattr(command, "commands", {}).items():
        yield from _commands(f"{name} {inner}", below)


def schema() -> dict[str, dict[str, list[str]]]:
    """Tables and views of a new database, each with its columns in their order."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "new.sqlite"
        open_store(place).close()
        return {kind: columns(place, kind) for kind in ("table", "view")}


def columns(place: Path, kind: str) -> dict[str, list[str]]:
    """The columns of each `table` or `view` of a file."""
    named = "SELECT name FROM sqlite_master WHERE type = ? AND name NOT LIKE 'sqlite_%' ORDER BY name"
    with closing(sqlite3.connect(place)) as connection:
        names = [name for (name,) in connection.execute(named, (kind,))]
        return {
            name: [row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')] for name in names
        }


def variables() -> list[str]:
    """Environment variables that the documentation names."""
    return _in_docs(r"\b(?:KERNELPROOF|OPENAI)_[A-Z_]+\b")


def imports() -> list[str]:
    """What the documentation imports, as `module` or `module:name`, and the modules that it runs."""
    statements = _in_docs(r"(?:from kernelproof[\w.]* import [\w, ]+|import kernelproof[\w.]*)")
    named = {name for statement in statements for name in _imported(statement)}
    return sorted(named | set(_in_docs(r"\bkernelproof(?:\.\w+)+:[A-Za-z]\w*")))


def _imported(statement: str) -> Iterable[str]:
    (node,) = ast.parse(statement.strip(" ,")).body
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}:{alias.name}" for alias in node.names]
    assert isinstance(node, ast.Import)
    return [alias.name for alias in node.names]


def modules_run() -> list[str]:
    """The modules that the documentation starts with `python -m`."""
    return [line.split()[-1] for line in _in_docs(r"python -m kernelproof[\w.]*\w")]


def entry_points() -> dict[str, list[str]]:
    """Groups that the documentation has other packages name, and the scripts that this one installs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = (re.findall(r'entry-points\."([\w.]+)"|entry point group `([\w.]+)`', page) for page in _pages())
    named = {first or second for page in groups for first, second in page}
    return {"groups": sorted(named), "scripts": sorted(project["scripts"])}


def _in_docs(pattern: str) -> list[str]:
    return sorted({text for page in _pages() for text in re.findall(pattern, page)})


def _pages() -> Iterator[str]:
    yield from (page.read_text(encoding="utf-8") for page in DOCS)


def resolved(path: str) -> Any:
    """The module, or the thing in it, that an entry of `imports` names. Raises what the import raises."""
    module, _, name = path.partition(":")
    found = importlib.import_module(module)
    return getattr(found, name) if name else found


PARTS: dict[str, Callable[[], Any]] = {
    "check names": check_names,
    "commands": commands,
    "entry points": entry_points,
    "exit codes": exit_codes,
    "imports": imports,
    "lists": lists,
    "modules run": modules_run,
    "schema": schema,
    "statuses": statuses,
    "variables": variables,
}
