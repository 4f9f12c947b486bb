"""What is hashed, and the hashes: a collector for each part of `keys.json`.

The inputs are a golden file too, `cases.json`.
"""

from __future__ import annotations

import json
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from kernelproof.problems import open_suite, read_problem
from kernelproof.prompting import Failure, first_prompt, list_templates, repair_prompt
from kernelproof.runs.config import BatchConfig, checked, read_config
from kernelproof.runs.prompts import question_key
from kernelproof.service.schemas import EvaluationRequest, Reader
from kernelproof.types import (
    AttemptKey,
    FrozenRecord,
    Problem,
    Prompt,
    Response,
    RunSettings,
    Status,
    VerifySettings,
)
from kernelproof.verifier.referee.correctness import tolerance
from kernelproof.verifier.referee.ledger import derived
from kernelproof.version import POLICY
from tests.golden.loading import BUNDLE, CONFIG, FILES, load

BACKENDS = ("cpp", "cuda", "tilelang", "triton")
CASES = load("cases.json")
FAILURE = Failure(status=Status.WRONG_OUTPUT, reason="values: drawn: 3 of 64 elements wrong")


def canonical(record: FrozenRecord) -> str:
    """The text that is hashed."""
    value = record.model_dump(mode="json")
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def verify_settings() -> dict[str, str]:
    """Settings of a verification as they are stored."""
    return {name: canonical(VerifySettings(**case)) for name, case in CASES["verify settings"].items()}


def runs() -> dict[str, dict[str, str]]:
    """Settings of runs as they are stored, and their keys."""
    known = {name: RunSettings(**case) for name, case in CASES["runs"].items()}
    return {name: {"json": canonical(run), "key": run.key} for name, run in known.items()}


def question_keys() -> dict[str, str]:
    """The key of each question of each run, about one prompt."""
    prompt = Prompt(template="basic-v1", template_sha256="1" * 64, system="s", user="u", sha256="4" * 64)
    return {
        f"{run}: {attempt}": question_key(RunSettings(**settings), AttemptKey(**key), prompt)
        for run, settings in CASES["runs"].items()
        for attempt, key in CASES["attempts"].items()
    }


def relu() -> Problem:
    """The problem that prompts are rendered for."""
    return read_problem(FILES / "problems" / "level1" / "1_relu.py")


def prompts() -> dict[str, dict[str, str]]:
    """Hashes of rendered prompts: the first question and the one after a wrong answer, by template."""
    found = {}
    for template in (each.name for each in list_templates()):
        for backend in BACKENDS:
            first = first_prompt(relu(), backend=backend, template=template)
            answer = Response(text="```python\nclass ModelNew: pass\n```")
            repair = repair_prompt(
                *(relu(),),
                backend=backend,
                template=template,
                previous=first,
                response=answer,
                failure=FAILURE,
            )
            found[f"{template}, {backend}"] = {"first": first.sha256, "repair": repair.sha256}
    return found


def templates() -> dict[str, dict[str, str]]:
    """Hashes of the packaged templates, with the example of each backend."""
    return {each.name: {backend: each.sha256(backend) for backend in BACKENDS} for each in list_templates()}


def problems() -> dict[str, str]:
    """Hashes of the packaged problems, and of the golden suite's."""
    packaged = {problem.id: problem.sha256 for problem in open_suite().problems()}
    golden = {f"golden {each.id}": each.sha256 for each in open_suite(FILES / "problems").problems()}
    return packaged | golden


def policy() -> dict[str, str]:
    """The policy of verdicts, and the hash of its tolerances."""
    return {"policy": POLICY, "tolerance": tolerance.policy_sha256()}


def requests() -> dict[str, str]:
    """What tells equal requests of the evaluation service, for the verifier of version 0.2.0."""
    reader = Reader(
        open_suite(FILES / "problems"), VerifySettings(backend="cpp", size="full"), True, threading.Lock()
    )
    reference = {"reference": relu().source, "source": "no code"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[Reader.__module__], "VERIFIER", "0.2.0 policy:2")
        return {
            name: reader.read(EvaluationRequest(**case)).request_sha256
            for name, case in (CASES["requests"] | {"a reference": reference}).items()
        }


def seeds() -> list[int]:
    """The first seeds that follow from one secret seed."""
    return [derived(2**61 + 1, number) for number in range(1, 6)]


def bundle() -> dict[str, str]:
    """The hash that names the golden bundle, by its manifest."""
    with zipfile.ZipFile(BUNDLE) as container:
        manifest = json.loads(container.read("manifest.json"))
    return {"sha256": manifest["sha256"]}


def configuration() -> Any:
    """What `batch.toml` says."""
    return TypeAdapter(BatchConfig).dump_python(checked(read_config(CONFIG), Path(CONFIG)), mode="json")


PARTS: dict[str, Callable[[], Any]] = {
    "bundle": bundle,
    "configuration": configuration,
    "policy": policy,
    "problems": problems,
    "prompts": prompts,
    "question keys": question_keys,
    "requests": requests,
    "runs": runs,
    "seeds": seeds,
    "templates": templates,
    "verify settings": verify_settings,
}
