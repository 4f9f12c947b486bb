"""No compiler runs while a device is held, a build failure is told at once, and it has one status."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelproof.problems import open_suite
from kernelproof.types import Status, Verification, VerifySettings
from kernelproof.verifier.engine.engine import Engine
from tests.engine.host import verdict

HEAD = """
import os, tempfile, torch
from torch import nn
from torch.utils.cpp_extension import load_inline

BROKEN = 'extern "C" int f() { return one_too_many; }'
FINE = 'extern "C" int f() { return 1; }'

def built(name, text):
    return load_inline(name, text, no_implicit_headers=True, is_python_module=False)
"""
MODEL = """
class ModelNew(nn.Module):
    def forward(self, x):
        {first}
        return {result}
"""


@pytest.fixture
def engine(new_cache: Path) -> Iterator[Engine]:
    with Engine(new_cache) as made:
        yield made


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One engine for tests whose extensions have a text of their own, so that none is built already."""
    with Engine(tmp_path_factory.mktemp("shared")) as made:
        yield made


def judged(
    engine: Engine,
    top: str = "",
    first: str = "pass",
    result: str = "torch.relu(x)",
    head: str = HEAD,
    **more: object,
) -> Verification:
    given = {"backend": "cpp", "size": "small", "trials": 1, "measure": False, "own_kernel": False}
    settings = VerifySettings.model_validate(given | more)
    source = head + top + MODEL.format(first=first, result=result)
    return engine.verify(source, open_suite().find("level1/1"), settings)


LATE = 'built("late", f"// {x.data_ptr() != 0}" + chr(10) + FINE)'
"""A build whose text shows only where tensors have memory: nobody can foresee it."""


@pytest.mark.slow
def test_what_nobody_foresaw_is_built_while_nothing_is_held(engine: Engine) -> None:
    found = judged(engine, first=LATE)
    assert found.status is Status.CORRECT, f"{found.reason}\n{found.details}"
    assert {build.name for build in found.builds} == {"late"}
    assert found.stage_seconds["handed_back"] > 0
    assert found.stage_seconds["builds_while_held"] == 0
    again = judged(engine, first=LATE)
    assert again.status is Status.CORRECT and "handed_back" not in again.stage_seconds


@pytest.mark.slow
def test_a_name_that_differs_each_time_is_built_once(engine: Engine) -> None:
    top = "import uuid\nbuilt('n' + uuid.uuid4().hex, FINE)\n"
    found = judged(engine, top)
    assert found.status is Status.CORRECT, f"{found.reason}\n{found.details}"
    assert len(found.builds) == 1
    assert "handed_back" not in found.stage_seconds and found.stage_seconds["builds_while_held"] == 0


CAUGHT = """
try:
    built("own", BROKEN)
except Exception:
    pass
"""
IN_CALL = "\n        ".join(["try:", "    built('own', BROKEN)", "except Exception:", "    pass"])
LATE_IN_CALL = "if x.data_ptr() != 0:\n            " + IN_CALL.replace("\n", "\n    ")


@pytest.mark.ci
@pytest.mark.parametrize(
    "result",
    [
        "torch.relu(x)",
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in ("x", "torch.relu(x)[0]", "torch.relu(x.nothing)")
        ),
    ],
)
@pytest.mark.parametrize(
    ("top", "first"),
    [("built('own', BROKEN)\n", "pass"), (CAUGHT, "pass"), ("", IN_CALL), ("", LATE_IN_CALL)],
    ids=["raised", "caught at the top", "caught in a call", "seen by the referee only"],
)
def test_an_extension_that_does_not_compile_has_one_status(
    shared: Engine, top: str, first: str, result: str
) -> None:
    head = HEAD.replace("one_too_many; }", f"one_too_many; }} // {uuid.uuid4().hex}")
    found = judged(shared, top, first, result, head)
    assert found.status is Status.BUILD_ERROR, found.reason
    assert found.reason.startswith("your extension did not compile")
    assert "main.cpp:1:29: error: 'one_too_many' was not declared in this scope" in found.reason


@pytest.mark.slow
def test_an_extension_that_did_compile_beside_it_is_judged(engine: Engine) -> None:
    found = judged(engine, CAUGHT + "built('other', FINE)\n")
    assert found.status is Status.CORRECT, found.reason
    wrong = judged(engine, CAUGHT + "built('other', FINE)\n", result="x")
    assert wrong.status is Status.WRONG_OUTPUT
    raised = judged(engine, CAUGHT + "built('other', FINE)\n", result="torch.relu(x.nothing)")
    assert raised.status is Status.RUNTIME_ERROR
    uncaught = judged(engine, "built('other', FINE)\nbuilt('own', BROKEN)\n")
    assert uncaught.status is Status.BUILD_ERROR


@pytest.mark.slow
def test_a_failure_that_is_met_again_and_again_is_told_once(engine: Engine) -> None:
    found = judged(engine, first=LATE_IN_CALL, trials=2)
    assert found.status is Status.BUILD_ERROR and len(found.builds) > 1
    assert f"(asked for {len(found.builds)} times)" in found.reason
    assert found.reason.count("error:") == 1


@pytest.mark.ci
def test_a_build_failure_is_told_while_a_referee_is_at_work(
    host: Path, referees: Callable[..., None], tmp_path: Path
) -> None:
    """The environment of the machine, which the record wants, is not asked of a referee that has no time."""
    done, go_on = tmp_path / "began", tmp_path / "go_on"
    wait = (
        "from kernelproof.verifier.contestant import wire; import torch; "
        "from kernelproof.verifier.referee.environment import describe_environment; "
        'message.get("op") == "verify" and (wire.send(_[0], {"stage": "environment", "environment": '
        'describe_environment(torch.device("cpu")).model_dump(mode="json")}), '
        f"Path({str(done)!r}).touch(), [time.sleep(0.05) for _ in iter(lambda: Path({str(go_on)!r})"
        ".exists(), True)])"
    )
    referees(before=wait)
    order: list[str] = []
    with Engine(tmp_path / "cache") as engine:

        def other() -> None:
            verdict(engine)
            order.append("judged")

        thread = threading.Thread(target=other)
        thread.start()
        while not done.exists():
            time.sleep(0.05)
        found = judged(engine, "built('own', BROKEN)\n", backend="cuda")
        order.append("told")
        go_on.touch()
        thread.join()
    assert found.status is Status.BUILD_ERROR and found.environment is not None
    assert order == ["told", "judged"]
