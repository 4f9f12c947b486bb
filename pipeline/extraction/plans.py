"""The plans in an answer to a question that asks for plans: numbered headings, and the prose below each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from kernelproof.extraction.extract import answer_of
from kernelproof.extraction.reasons import declined, reason_of
from kernelproof.types import Extraction, Plan, Response, Status
from kernelproof.wording import counted

MOST = 10
"""Plans that are taken from one answer."""
MAX_TITLE = 120
MAX_PROSE = 1_500
"""Characters of a plan below its title."""

_NUMBER = r"(?:[Pp][Ll][Aa][Nn][ \t]+)?\d{1,2}[ \t]*[.):\u2013\u2014-][ \t]*"
_STYLES = (
    re.compile(rf"^#{{1,6}}[ \t]*\**{_NUMBER}(?P<title>\S[^\n]*)$", re.MULTILINE),
    re.compile(rf"^\*\*[ \t]*{_NUMBER}(?P<title>\S[^\n]*)$", re.MULTILINE),
    re.compile(rf"^(?:{_NUMBER})(?P<title>\S[^\n]*)$", re.MULTILINE),
    re.compile(r"^#{1,6}[ \t]+(?P<title>\S[^\n]*)$", re.MULTILINE),
)
"""How plans begin, the surest first: `## 1. Title`, `**1. Title**`, `1. Title` or `Plan 1:`, `## Title`."""
_CODE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_BLANKS = re.compile(r"\n{3,}")


def extract_plans(response: Response) -> Extraction:
    """The record of an answer to a question for plans: never a program, and how many plans it holds."""
    found = len(read_plans(response))
    status = declined(response)
    why = f": {reason_of(status, response, ())}" if status is not None else ""
    reason = counted(found, "plan") if found else f"no plan{why}"
    return Extraction(candidate=None, status=Status.PLANS, reason=reason, method="none")


def read_plans(response: Response) -> tuple[Plan, ...]:
    """The plans in an answer, at most `MOST`, without thinking and without code. Total and deterministic."""
    answer = answer_of(response) if declined(response) is None else None
    if answer is None:
        return ()
    text = _CODE.sub("", answer)
    known: dict[str, Plan] = {}
    for plan in (_plan(text, *place) for place in _places(text)):
        if plan.title:
            known.setdefault(plan.title.casefold(), plan)
    return tuple(known.values())[:MOST]


def _places(text: str) -> Sequence[tuple[re.Match[str], int]]:
    """Where each plan begins and ends: the first style with two plans or more, else with one."""
    found = [list(style.finditer(text)) for style in _STYLES]
    chosen = next((starts for starts in found if len(starts) > 1), None) or next(filter(None, found), [])
    ends = [later.start() for _, later in pairwise(chosen)]
    return list(zip(chosen, [*ends, len(text)], strict=True)) if chosen else []


def _plan(text: str, start: re.Match[str], end: int) -> Plan:
    """The first line is the title; of `**Title**: prose` the bold part."""
    said, prose = start["title"].strip().removeprefix("**"), text[start.end() : end]
    bold, closed, rest = said.partition("**")
    title = " ".join((bold if closed else said).replace("`", "'").replace("*", "").split()).strip("#: ")
    if closed or len(title) > MAX_TITLE:
        prose = f"{rest.lstrip(' :.-') if closed else title}\n{prose}"
    prose = _BLANKS.sub("\n\n", prose).strip()
    cut = prose if len(prose) <= MAX_PROSE else f"{prose[:MAX_PROSE].rstrip()} ..."
    return Plan(title=title[:MAX_TITLE], text=cut)
