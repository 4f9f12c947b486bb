"""Hashes that tell stored work: other ones would have every question asked, and everything judged, again."""

from __future__ import annotations

import pytest

from kernelproof.hashing import sha256_text
from kernelproof.types import RunSettings, VerifySettings
from tests.golden import keys
from tests.golden.keys import canonical
from tests.golden.loading import FIXED, load


@pytest.mark.parametrize("part", sorted(keys.PARTS))
def test_they_are_what_they_were(part: str) -> None:
    assert keys.PARTS[part]() == load("keys.json")[part], FIXED


def test_stored_settings_are_read_and_written_byte_for_byte() -> None:
    golden = load("keys.json")
    for run in golden["runs"].values():
        settings = RunSettings.model_validate_json(run["json"])
        assert canonical(settings) == run["json"]
        assert settings.key == sha256_text(run["json"]) == run["key"]
    for text in golden["verify settings"].values():
        assert canonical(VerifySettings.model_validate_json(text)) == text
