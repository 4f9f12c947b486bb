"""One verification on screen, as `verify` and `reproduce` print it."""

from __future__ import annotations

import json

from rich.console import Console

from pipeline.nouns import Extraction, Status, Verification
from pipeline.report.plain import clean, json_text
from pipeline.report.show import print_verification


def print_verified(
    extraction: Extraction,
    status: Status,
    verification: Verification | None,
    attempt_id: int | None,
    console: Console,
) -> None:
    """The verdict with every check, and where it is kept."""
    if extraction.method != "file":
        console.print(f"extracted by {extraction.method} {' '.join(extraction.warnings)}".rstrip())
    if verification is None:
        console.print(f"{status}: {status.meaning}")
    else:
        print_verification(verification, console)
    if attempt_id is not None:
        console.print(f"kept as attempt {attempt_id}: kernelproof show {attempt_id}")


def json_verified(
    extraction: Extraction, status: Status, verification: Verification | None, attempt_id: int | None
) -> str:
    """The same as one JSON object."""
    found = {
        "attempt": attempt_id,
        "status": status.value,
        "extraction": extraction.model_dump(mode="json", exclude={"candidate"}),
        "verification": json.loads(json_text(verification)) if verification else None,
    }
    return clean(json.dumps(found, indent=1))
