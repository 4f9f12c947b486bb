"""A sound bundle, and what a forger does with it."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kernelproof.hashing import sha256_json, sha256_text
from kernelproof.problems.reading import Place, parse_problem
from kernelproof.runs.bundles.container import MANIFEST, BadBundle
from kernelproof.runs.bundles.reader import Bundle
from kernelproof.runs.bundles.writer import manifest_of, members_of
from kernelproof.types import (
    Candidate,
    Check,
    CheckOutcome,
    Extraction,
    Problem,
    Prompt,
    Response,
    RunSettings,
    Status,
    VerifySettings,
)
from kernelproof.types.reproduction import Bundled
from tests.cli import material
from tests.db import samples

Members = dict[str, bytes]
SETTINGS = VerifySettings(backend="cpp", trials=1)


def problem() -> Problem:
    """ReLU as level1/1."""
    return parse_problem(material.RELU, Place(Path(), "level1", 1, 1, "relu"), "relu.py", suite="tests")


def attempt(number: int = 17, source: str = "", speedup: float = 2.0) -> Bundled:
    """An attempt as kernelproof would bundle it: all its parts fit together."""
    source = source or material.right()
    asked = {"system": "You write kernels.", "history": (), "user": "Rewrite Model."}
    judged = samples.verification(problem(), Status.CORRECT, speedup, verify=SETTINGS)
    return Bundled(
        number=number,
        run=RunSettings(model="openai:m", template="basic-v1", verify=SETTINGS),
        sample=0,
        turn=1,
        problem=problem(),
        prompt=Prompt(template="basic-v1", template_sha256="0" * 64, sha256=sha256_json(asked), **asked),  # type: ignore[arg-type]
        response=Response(text=material.fenced(source), finish_reason="stop"),
        base=None,
        extraction=Extraction(candidate=Candidate(source=source, sha256=sha256_text(source)), method="fence"),
        verification=judged.model_copy(update={"candidate_sha256": sha256_text(source)}),
    )


def failed(number: int = 17) -> Bundled:
    """The same, with a verdict that it is wrong."""
    sound = attempt(number)
    check = Check(name="values: drawn", outcome=CheckOutcome.FAIL, asked="Are they right?", seen="3 wrong")
    verdict = {"status": Status.WRONG_OUTPUT, "measurement": None, "checks": (check,)}
    return sound.model_copy(update={"verification": sound.verification.model_copy(update=verdict)})


def members(*attempts: Bundled) -> Members:
    """The members of a bundle, the manifest among them."""
    return mended({name: data for each in attempts for name, data in members_of(each).items()})


def mended(found: Mapping[str, bytes]) -> Members:
    """The same members with a manifest that fits them again."""
    own = {name: data for name, data in found.items() if name != MANIFEST}
    return {MANIFEST: json.dumps(manifest_of(own)).encode(), **own}


def zipped(found: Mapping[str, bytes]) -> bytes:
    """Members as a bundle's zip file, with the manifest as it is."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in found.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def unzipped(data: bytes) -> Members:
    """The members of a bundle."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def edited(found: Members, name: str, change: Callable[[Any], Any]) -> Members:
    """The members with one record changed: `change` changes the value, or returns another one."""
    value = json.loads(found[name])
    other = change(value)
    return {**found, name: json.dumps(value if other is None else other).encode()}


def told(path: Path) -> list[str]:
    """A reader's lines about a bundle: why it is not opened, or the signs that it was edited."""
    try:
        with Bundle(path) as bundle:
            taken = [bundle.checked_attempt(number).tampering for number in bundle.numbers]
            return [*bundle.tampering, *(line for lines in taken for line in lines)]
    except BadBundle as error:
        return [str(error)]
