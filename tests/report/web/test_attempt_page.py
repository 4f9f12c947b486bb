"""The page of one attempt, whatever became of it; and `show --html`, which writes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelproof.db.store import Store
from kernelproof.errors import UsageError
from kernelproof.report.web.pages import attempt as attempt_content
from kernelproof.report.web.pages import in_file
from kernelproof.types import Status
from tests.db import samples
from tests.hostile_texts import HARMFUL, TEXTS
from tests.report.conftest import Command
from tests.report.web.parsed import Parsed


def shown(store: Store, attempt: int) -> Parsed:
    return Parsed(in_file(attempt_content(store, attempt)))


def test_a_wrong_attempt_is_shown_with_its_evidence(store: Store) -> None:
    attempt, _ = samples.judge(store, samples.problem(), samples.settings(), Status.WRONG_OUTPUT)
    text = shown(store, attempt).text
    for fact in (
        "Attempt #1: level1/1 softmax",
        "wrong_output: because",
        "Rewrite Model.",
        samples.SOURCE,
        "warning: unused",
        "kernelproof reproduce 1",
        "Difference to the reference",
        "Test CPU",
    ):
        assert fact in text, fact


def test_a_verdict_is_said_once_beside_the_headline(store: Store) -> None:
    attempt, _ = samples.judge(store, samples.problem(), samples.settings(), Status.WRONG_OUTPUT)
    assert shown(store, attempt).text.count("because") == 2, "in the headline, and with the evidence"


def test_an_attempt_in_progress_says_what_there_is(store: Store) -> None:
    attempt = samples.begin(store, samples.problem(), samples.settings())
    text = shown(store, attempt).text
    assert "in progress" in text and "No response is stored." in text
    assert "kernelproof reproduce" not in text, "there is nothing to reproduce"
    store.record_provider_error(attempt, "503 <overloaded>")
    assert "503 <overloaded>" in shown(store, attempt).text


def test_every_verification_is_listed(store: Store) -> None:
    attempt, first = samples.judge(store, samples.problem(), samples.settings(), speedup=2.0)
    store.record_verification(attempt, samples.verification(samples.problem(), speedup=1.5), "again")
    store.retract(first, "the fan was off")
    text = shown(store, attempt).text
    assert "retracted: the fan was off" in text
    assert "1.50× [1.48, 1.52] faster" in text


def test_show_writes_it(
    store: Store, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples.judge(store, samples.problem(), samples.settings(), speedup=2.0)
    assert "a.html" in command("show", "last", "--html", "-o", str(tmp_path / "a.html"))
    assert "Attempt #1" in (tmp_path / "a.html").read_text()
    monkeypatch.chdir(tmp_path)
    assert command("show", "--html").startswith("attempt-1.html: ")
    assert (tmp_path / "attempt-1.html").exists()
    with pytest.raises(UsageError, match="--output is the file that --html writes; give --html as well"):
        command("show", "-o", "x.html")
    with pytest.raises(UsageError, match="--json and --html exclude each other"):
        command("show", "--html", "--json")


def test_hostile_texts_are_text_in_an_attempts_page(hostile_store: Store) -> None:
    for number in range(0, len(TEXTS), 3):  # the report has them all
        found = in_file(attempt_content(hostile_store, number + 1))
        assert HARMFUL.search(found) is None, TEXTS[number]
        parsed = Parsed(found)
        names = [tag for tag, _ in parsed.elements]
        assert (names.count("script"), names.count("style"), names.count("main")) == (1, 1, 1), TEXTS[number]
        assert not {"iframe", "img", "base", "object", "form", "input", "image", "use"} & set(names)
        for _, attributes in parsed.elements:
            assert not [name for name in attributes if name.startswith("on") or name in ("style", "src")]
