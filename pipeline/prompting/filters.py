"""What templates may do with values: Jinja2 filters, each a plain function."""

from __future__ import annotations

import pprint
import re
from collections.abc import Callable, Sequence
from typing import Any


def fence(text: str, language: str = "") -> str:
    """`text` in a Markdown code fence longer than any run of backticks in it: nothing closes it early."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    body = text if text.endswith("\n") or not text else text + "\n"
    return f"{ticks}{language}\n{body}{ticks}"


def number(value: float) -> str:
    """At most four significant digits: `0.01235`, `1.2e-07`, `nan`."""
    return f"{value:.4g}"


def percent(fraction: float) -> str:
    """A fraction as a percentage; a part is never rounded to nothing or to the whole."""
    if 0 < fraction < 0.0001:
        return "< 0.01 %"
    if 0.9999 < fraction < 1:
        return "> 99.99 %"
    return f"{fraction * 100:.4g} %"


def index(position: Sequence[int]) -> str:
    """A tensor index as Python writes it: `[0, 3]`; `[]` for a scalar."""
    return f"[{', '.join(map(str, position))}]"


def literal(value: Any) -> str:
    """A size preset's value as a Python literal on one line."""
    return pprint.pformat(value, width=10**6, compact=True)


def mib(size: int) -> str:
    """Bytes as whole MiB, without the unit."""
    return str(round(size / 2**20))


def data(size: int) -> str:
    """Bytes with a binary prefix, three significant digits: `64 MiB`, `1.5 KiB`."""
    value, prefixes = float(size), ["bytes", "KiB", "MiB", "GiB"]
    while value >= 1000 and len(prefixes) > 1:
        value, prefixes = value / 1024, prefixes[1:]
    return f"{value:.3g} {prefixes[0]}"


FILTERS: dict[str, Callable[..., str]] = {
    "fence": fence,
    "number": number,
    "percent": percent,
    "index": index,
    "literal": literal,
    "mib": mib,
    "data": data,
}
