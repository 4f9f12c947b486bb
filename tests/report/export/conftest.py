"""Two models on three problems, with turns, a failure of the machine, and a program given as a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kernelproof.cli.commands import CommandLine
from kernelproof.cli.report import export
from kernelproof.db.attempts import Finished
from kernelproof.db.store import Store
from kernelproof.types import Status, VerifySettings
from tests.db import samples

Exported = Callable[..., Path]
TF32 = VerifySettings(backend="cpp", size="small", numerics="tf32")


@pytest.fixture(scope="session")
def filled(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with samples.new_store(tmp_path_factory.mktemp("exported"), empty_database) as store:
        good, poor = samples.settings("vendor:good", name="a"), samples.settings("vendor:poor", name="a")
        samples.judge(store, samples.problem(1), good, Status.WRONG_OUTPUT)
        samples.judge(store, samples.problem(1), good, speedup=2.0, turn=2)
        samples.judge(store, samples.problem(1), good, Status.BUILD_ERROR, sample=1)
        samples.judge(store, samples.problem(12), good, speedup=0.5)
        samples.judge(store, samples.problem(2, level=2), good)  # correct, not measured
        samples.judge(store, samples.problem(1), poor, Status.INFRASTRUCTURE_ERROR)
        samples.judge(store, samples.problem(1), samples.settings("vendor:good", TF32, "b"), speedup=4.0)
        given = samples.settings("file").model_copy(update={"kind": "verify"})
        found = samples.verification(samples.problem(1), speedup=3.0)
        store.add_finished(
            Finished(
                given, samples.problem(1), samples.response(), samples.extraction(), found, Status.CORRECT
            )
        )
        unfinished = samples.begin(store, samples.problem(3), good)
        store.record_response(unfinished, samples.response())
        yield store


@pytest.fixture
def exported(filled: Store, tmp_path: Path) -> Exported:
    """`exported("pairs", "--model", "good")` runs the command; where it wrote."""
    return exporting(filled, tmp_path)


def exporting(store: Store, folder: Path) -> Exported:
    app = CommandLine(help="")
    app.command()(export)

    def run(form: str, *arguments: str) -> Path:
        target = folder / f"out-{form}"
        workspace = str(store.path.parents[1])
        command = [form, "-o", str(target), *arguments, "--workspace", workspace]
        result = CliRunner().invoke(app, command)
        if result.exception is not None:
            raise result.exception
        (folder / "said").write_text(result.output)
        return target

    return run
