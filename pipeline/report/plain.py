"""Making text safe and screens plain: a model's text never steers a terminal."""

from __future__ import annotations

import codecs
import errno
import io
import json
import math
import re
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_WIDTH = 240
"""Columns of output that no terminal reads: wide enough that no table cell is cut."""

_ESCAPES = re.compile(
    r"\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, SOS, PM, APC: titles, links, clipboard
    r"|[ -/]*[0-~])?"  # all others
)
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # reordering, which shows another program than there is
    r"\u2028\u2029\ufff9-\ufffb"  # line ends and notes that only some programs know
    r"\u00ad\u180e\u200b-\u200d\u2060-\u2064\u3164\ufeff\U000e0000-\U000e007f"  # no width: names look alike
    r"]"
)
_SURROGATES = re.compile(r"[\ud800-\udfff]")


def clean(text: str) -> str:
    """`text` without escape sequences, control, reordering, invisible characters; newlines and tabs stay."""
    text = _CONTROLS.sub("", _ESCAPES.sub("", text))
    return _SURROGATES.sub("\ufffd", text)


def visible(text: str) -> str:
    """`text` with a sign for each character that `clean` takes out, so that a reader of a page sees it.

    A control character becomes its picture (ESC: `␛`), another one its number (`⟨U+202E⟩`).
    """
    return _SURROGATES.sub("\ufffd", _CONTROLS.sub(_sign, text.replace("\r\n", "\n")))


def _sign(match: re.Match[str]) -> str:
    number = ord(match[0])
    if number < 0x20:
        return chr(0x2400 + number)
    return "␡" if number == 0x7F else f"⟨U+{number:04X}⟩"


def whole(text: str) -> str:
    """The text as it is, but for halves of characters, which are no Unicode: each becomes U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def say(text: str, *, err: bool = False) -> None:
    """Prints a line that may quote a name, a file, a problem or a server."""
    print(clean(text), file=sys.stderr if err else sys.stdout, flush=True)


def say_text(text: str) -> None:
    """Prints a text that a program may read: as it is, and cleaned only for a terminal."""
    if sys.stdout.isatty():
        say(text)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(f"{text}\n".encode("utf-8", "surrogatepass"))
    sys.stdout.buffer.flush()


_ASCII = str.maketrans("×·…±†→─│┼●", "x-.~*>-|+o")


def _spelled(error: UnicodeError) -> tuple[str, int]:
    """In ASCII what a stream's encoding lacks: of our signs a likeness, of others a question mark."""
    assert isinstance(error, UnicodeEncodeError)
    lacking = error.object[error.start : error.end].translate(_ASCII)
    return lacking.encode("ascii", "replace").decode(), error.end


codecs.register_error("kernelproof.ascii", _spelled)


def screen(stream: TextIO | None = None, width: int | None = None) -> Console:
    """A console on `stream` (default stdout) that reads no markup; without a terminal plain and wide.

    `width`: in characters, in place of the terminal's. Printing raises BrokenPipeError when nobody reads any
    more.
    """
    from rich.console import Console

    class Screen(Console):
        def on_broken_pipe(self) -> None:
            """Raises: what is at work must be ended first, which rich's exit would skip."""
            raise BrokenPipeError(errno.EPIPE, "nobody reads the output any more")

    stream = stream or sys.stdout
    if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
        stream.reconfigure(errors="kernelproof.ascii")
    width = width or (None if stream.isatty() else PLAIN_WIDTH)
    return Screen(file=stream, width=width, markup=False, highlight=False, emoji=False, soft_wrap=False)


def json_text(value: Any) -> str:
    """A record, or a value with records in it, as indented ASCII JSON; infinities and NaN as null."""
    return json.dumps(finite(value), indent=2, allow_nan=False)


def json_line(value: Any) -> str:
    """The same on one line."""
    return json.dumps(finite(value), allow_nan=False)


def finite(value: Any) -> Any:
    """A value of JSON's kinds, with infinities and NaN as None: JSON lacks them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, date | Path):
        return str(value)
    return finite(value.model_dump()) if hasattr(value, "model_dump") else value
