"""The door: from a text to a candidate, or to the status that says why there is none. Never runs the text.

`extract` is the only way in. A model's answer, a file, standard input, a line of JSON and a string from
Python all go through it, so the same text is the same candidate everywhere.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from kernelproof.extraction.blocks import begins_as_program, edited
from kernelproof.extraction.completeness import LABEL, NAME, written_programs
from kernelproof.extraction.normalise import Budget, normalise
from kernelproof.extraction.reasons import reason_of, remark
from kernelproof.extraction.search import REFERENCE, Selection, find_program
from kernelproof.extraction.thinking import Answer, set_thinking_aside
from kernelproof.hashing import sha256_text
from kernelproof.pysource import find_class
from kernelproof.types import Candidate, Extraction, Plan, Response, Status
from kernelproof.types.exchange import FAILED, FILTERED, LIMITED, REFUSED
from kernelproof.wording import counted

MAX_TEXT = 4_000_000
"""Most characters that are looked at. The longest text then takes half a minute, if it is made for that."""
_CLOSED_END = re.compile(r"\s*(?:`{3,}|~{3,})\s*")
_LONE_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})[ \t]*(?:python3?|py)?[ \t]*\n")
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})", re.MULTILINE)


def extract(response: Response, base: str | None = None) -> Extraction:
    """The program that a text means. Total and deterministic; bounded work for any text.

    `base` is the program that the question showed. An answer without a program of its own may be a diff of it
    (`blocks.edited`).

    A text that a user gives is `Response(text=text)`, without a finish reason. Only the finish reason makes a
    difference. When the server cut the answer off, a program that runs to the end is `truncated`. Otherwise
    the program is taken: one with a string that is never closed is a syntax error, which the policy reports.
    """
    status = declined(response)
    selection = _find(response) if status is None else Selection(None, status=status)
    if (response.finish_reason or "").lower() in LIMITED | FILTERED | REFUSED | FAILED:
        selection = replace(
            selection, warnings=(*selection.warnings, remark("finish_reason", response.finish_reason))
        )
    lacking = selection.status is Status.NO_CODE or remark("does_not_parse") in selection.warnings
    answer = answer_of(response) if status is None and lacking else None
    changed = edited(answer, base) if answer is not None else None
    if changed is not None and changed.code is not None:
        selection = Selection(changed.code, "diff")
    elif changed is not None:
        none = _none(response, Status.NO_CODE, selection.warnings)
        return none.model_copy(update={"reason": changed.reason})
    if selection.code is None:
        return _none(response, selection.status or Status.NO_CODE, selection.warnings)
    start = (response.text or "").rfind(selection.code)
    return Extraction(
        candidate=Candidate(source=selection.code, sha256=sha256_text(selection.code)),
        method=selection.method,
        warnings=tuple(dict.fromkeys(selection.warnings)),
        span=(start, start + len(selection.code)) if start >= 0 else None,
    )


def declined(response: Response) -> Status | None:
    """`filtered`, `refused` or `provider_error`, where the server says so; whatever text there is, nothing is
    taken from it."""
    finish = (response.finish_reason or "").lower()
    if finish in FAILED:
        return Status.PROVIDER_ERROR
    if finish in FILTERED:
        return Status.FILTERED
    return Status.REFUSED if finish in REFUSED or (response.refusal or "").strip() else None


def answer_of(response: Response) -> str | None:
    """A response's text without its thinking; None where it is too long, or the thinking never ends."""
    raw = response.text or ""
    if len(raw) > MAX_TEXT:
        return None
    answer = set_thinking_aside(normalise(raw)[0], Budget())
    return None if answer.unclosed else answer.text


def _find(response: Response) -> Selection:
    """Looks for the program in an answer that the server did not withhold."""
    raw, budget = response.text or "", Budget()
    cut = (response.finish_reason or "").lower() in LIMITED
    if len(raw) > MAX_TEXT:
        status = Status.TRUNCATED if cut else Status.NO_CODE
        return Selection(None, status=status, warnings=(remark("too_long", len(raw)),))
    if not cut and _is_program(raw, budget):
        return _whole(raw)
    text, warnings = normalise(raw)
    text = LABEL.sub("", text)
    answer = _answer(text, budget)
    text = text if answer.thinking or answer.unclosed else answer.text
    if not cut and _is_program(text, budget):
        selection = _whole(text)
    else:
        selection = _searched(answer, response.reasoning or "", budget, cut=cut)
        if not cut and not _is_partly_thinking(text, answer, budget):
            selection = _whole_text_or(text, selection, budget)
        elif not cut and selection.method == "bare" and selection.code != answer.text:
            selection = _whole_text_or(answer.text, selection, budget)
    return replace(selection, warnings=(*warnings, *answer.warnings, *selection.warnings))


def _is_partly_thinking(text: str, answer: Answer, budget: Budget) -> bool:
    """Whether the text begins with thinking, or ends in it; not where the mark that opens it is inside a
    string that the text before it leaves open."""
    if remark("missing_think_opener") in answer.warnings:
        return True
    fault = budget.parse(text[: len(text) - len(answer.thinking)]) if answer.unclosed else None
    return answer.unclosed and not (isinstance(fault, SyntaxError) and "unterminated triple" in fault.msg)


def _is_program(text: str, budget: Budget) -> bool:
    tree = budget.tree(text) if NAME in text and not LABEL.match(text) else None
    return tree is not None and find_class(tree, NAME) is not None and not written_programs(text)


def _whole(text: str) -> Selection:
    return Selection(text, "whole", None, (remark("reference_echoed"),) if REFERENCE.search(text) else ())


def _searched(answer: Answer, reasoning: str, budget: Budget, *, cut: bool) -> Selection:
    """The program within an answer. `cut`: the server says that it ended the text before the model did."""
    if answer.unclosed:
        return Selection(None, status=Status.TRUNCATED) if cut else _forgotten(answer.thinking, budget)
    selection = find_program(answer.text, budget)
    warnings = selection.warnings
    if budget.spent:
        warnings += (remark("work_limit"),)
    if not answer.text.strip():
        warnings += (remark("empty_content"),)
    status = None
    if selection.code is None:
        status = Status.TRUNCATED if selection.cut else Status.NO_CODE
    if selection.code is None and NAME not in answer.text and NAME in answer.thinking + reasoning:
        warnings += (remark("code_only_in_reasoning"),)
    elif not answer.text.strip():
        status = Status.EMPTY
    if cut and (selection.code is None or selection.to_the_end or remark("does_not_parse") in warnings):
        return Selection(None, status=Status.TRUNCATED, warnings=warnings)
    return replace(selection, status=status, warnings=warnings)


def _forgotten(thinking: str, budget: Budget) -> Selection:
    """The program with which thinking that never ends does end: the model only forgot to close it.

    The program's own fence has to be closed: a text that merely stops may have been cut off."""
    selection = find_program(thinking, budget)
    start = thinking.rfind(selection.code) if selection.code is not None else -1
    if start >= 0 and _CLOSED_END.fullmatch(thinking, start + len(selection.code or "")):
        return replace(selection, warnings=(*selection.warnings, remark("taken_from_thinking")))
    return Selection(None, status=Status.TRUNCATED)


def _whole_text_or(text: str, selection: Selection, budget: Budget) -> Selection:
    """The whole text, where it is a program with a fault that a later stage names; else what was found.

    Such are Python without ModelNew, and Python that does not parse. After one fence that opens the text,
    and that nothing closes, the rest is such a text too.
    """
    kept = selection.warnings if selection.code is not None else ()
    if _is_faulty_program(text, selection, budget):
        fault = "no_model_new" if budget.tree(text) is not None else "does_not_parse"
        return Selection(text, "whole", None, (*kept, remark(fault)))
    if selection.code is None and (code := _after_lone_fence(text, budget)) is not None:
        return Selection(code, "fence", None, (remark("unclosed_fence"), remark("does_not_parse")))
    return selection


def _is_faulty_program(text: str, selection: Selection, budget: Budget) -> bool:
    """True for Python without a usable ModelNew, and for Python whose only fault is a syntax error.

    In the second case nothing but comments and docstrings may stand before the program that was found; and
    where no program was found that parses, the text must begin as a program does.
    """
    tree = budget.tree(text)
    parses = tree is not None and not all(isinstance(statement, ast.Expr) for statement in tree.body)
    if parses and selection.code is None:
        return "import" in text or begins_as_program(text)
    if selection.method == "bare" and selection.code is not None:
        start = text.rfind(selection.code)
        if parses or (start >= 0 and budget.tree(text[:start]) is not None):
            return True
    usable = selection.code is not None and budget.tree(selection.code) is not None
    return begins_as_program(text) and (not usable or selection.method == "bare")


def _after_lone_fence(text: str, budget: Budget) -> str | None:
    """The program after a fence that opens the text, where no other fence closes it and it is Python that
    does not parse; else None."""
    opened = _LONE_FENCE.match(text)
    if opened is None or _FENCE.search(text, opened.end()):
        return None
    code = text[opened.end() :]
    return code if begins_as_program(code) and not isinstance(budget.parse(code), ast.Module) else None


def _answer(text: str, budget: Budget) -> Answer:
    """The text without its thinking. A text that is a program has none, though its strings may hold tags."""
    return Answer(text) if _is_program(text, budget) else set_thinking_aside(text, budget)


def _none(response: Response, status: Status, warnings: tuple[str, ...]) -> Extraction:
    return Extraction(
        candidate=None,
        status=status,
        reason=reason_of(status, response, warnings),
        method="none",
        warnings=tuple(dict.fromkeys(warnings)),
    )


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
