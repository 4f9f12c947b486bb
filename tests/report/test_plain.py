"""What a model wrote never steers a terminal."""

from __future__ import annotations

import io
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.report.plain import PLAIN_WIDTH, clean, json_text, screen
from kernelproof.types import Check, CheckOutcome


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;Zm9v\x07", ""),
        ("\x1bPq#0\x1b\\after", "after"),
        ("\x9b31mred", "31mred"),
        ("\x1bcreset", "reset"),
        ("\x1b", ""),
        ("a\rb\x08c\x00d", "abcd"),
        ("line\r\n\tnext", "line\n\tnext"),
        ("if admin\u202e\u2066 // check", "if admin // check"),
        ("half \ud800 pair", "half \ufffd pair"),
        ("naïve 数 🙂", "naïve 数 🙂"),
    ],
)
def test_escape_sequences_and_control_characters_are_taken_out(written: str, shown: str) -> None:
    assert clean(written) == shown


@given(st.text(st.characters(exclude_categories=())))
def test_no_control_character_is_left_and_cleaning_again_changes_nothing(text: str) -> None:
    shown = clean(text)
    assert all(c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs") for c in shown)
    assert clean(shown) == shown
    shown.encode()


def test_without_a_terminal_output_is_wide_and_colourless() -> None:
    stream = io.StringIO()
    screen(stream).print("x" * (PLAIN_WIDTH - 1), style="bold red")
    assert stream.getvalue() == "x" * (PLAIN_WIDTH - 1) + "\n"


def test_json_holds_texts_exactly_and_no_infinities() -> None:
    check = Check(
        name="n",
        outcome=CheckOutcome.PASS,
        asked="\x1b[31m\ud800",
        seen="",
        figures={"error": float("inf"), "all": [float("nan"), 1.5]},
    )
    text = json_text(check)
    text.encode("ascii")
    assert "\x1b" not in text
    value = json.loads(text)
    assert value["asked"] == "\x1b[31m\ud800"
    assert value["figures"] == {"error": None, "all": [None, 1.5]}


def test_a_terminal_without_unicode_gets_likenesses() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    screen(stream, width=80).print("1.20×† · ─┼●│ → é")
    stream.flush()
    assert stream.buffer.getvalue() == b"1.20x* - -+o| > ?\n"  # type: ignore[attr-defined]
