"""From a response to a candidate, or to the status that says why there is none. Never runs the text."""

from __future__ import annotations

import ast
import re

from pipeline.extraction.blocks import begins_as_program
from pipeline.extraction.budget import Budget
from pipeline.extraction.completeness import NAME
from pipeline.extraction.normalise import normalise
from pipeline.extraction.remarks import remark
from pipeline.extraction.search import Found, find_program
from pipeline.extraction.thinking import Answer, set_thinking_aside
from pipeline.hashing import sha256_text
from pipeline.pysource import find_class, parse
from pipeline.types import Candidate, Extraction, Response, Status

# As servers spell them: OpenAI, Anthropic, Google, vLLM.
_LENGTH = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
_FILTERED = frozenset(
    {"content_filter", "refusal", "safety", "prohibited_content", "blocklist", "recitation"}
)


_LONE_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})[ \t]*(?:python3?|py)?[ \t]*\n")
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})", re.MULTILINE)


def extract(response: Response) -> Extraction:
    """The program that the response means. Total and deterministic; bounded work for any text."""
    finish = (response.finish_reason or "").lower()
    if (response.refusal or "").strip() or finish in _FILTERED:
        return _none(Status.REFUSED, *((remark("finish_reason", finish),) if finish in _FILTERED else ()))
    text, warnings = normalise(response.text or "")
    budget = Budget()
    answer = _answer(text, budget)
    warnings += answer.warnings
    cut_by_server = finish in _LENGTH
    if cut_by_server:
        warnings += (remark("finish_reason", finish),)
    if answer.unclosed:
        return _none(Status.TRUNCATED, *warnings)
    found = find_program(answer.text, budget)
    warnings += found.warnings
    if budget.spent:
        warnings += (remark("work_limit"),)
    if not answer.text.strip():
        warnings += (remark("empty_content"),)
    if (
        found.code is None
        and NAME not in answer.text
        and NAME in answer.thinking + (response.reasoning or "")
    ):
        warnings += (remark("code_only_in_reasoning"),)
    if cut_by_server and (found.code is None or found.to_the_end or remark("does_not_parse") in warnings):
        return _none(Status.TRUNCATED, *warnings)
    return _extraction(found, response.text or "", warnings)


def extract_source(text: str) -> Extraction:
    """The program in a user's file: a Python file is taken unchanged, else the file is a raw response.

    A Python file without ModelNew, or with a syntax error, is taken too, with a warning: what is wrong with
    it is for the policy to say. It is never `truncated`: where a file's string, bracket or fence is not
    closed, nobody says that a server cut it off.
    """
    tree = parse(text)
    if not isinstance(tree, SyntaxError) and find_class(tree, NAME) is not None:
        return _extraction(Found(text, "file"), text, ())
    clean, warnings = normalise(text)
    found = extract(Response(text=clean))
    if _is_file(tree, clean, found):
        fault = "does_not_parse" if isinstance(parse(clean), SyntaxError) else "no_model_new"
        return _extraction(
            Found(clean, "file"),
            text,
            (*warnings, *(found.warnings if found.candidate else ()), remark(fault)),
        )
    if found.candidate is None and (code := _after_lone_fence(clean)) is not None:
        notes = (*warnings, remark("unclosed_fence"), remark("does_not_parse"))
        return _extraction(Found(code, "fence"), text, notes)
    span = found.span if clean == text else None
    return found.model_copy(update={"warnings": (*warnings, *found.warnings), "span": span})


def _is_file(tree: ast.Module | SyntaxError, text: str, found: Extraction) -> bool:
    """True for Python without a usable ModelNew, and for Python whose only fault is a syntax error.

    In the second case nothing but comments and docstrings may stand before the program that was found; and
    where no program was found that parses, the text must begin as a program does.
    """
    if isinstance(tree, ast.Module) and found.candidate is None:
        return "import" in text or begins_as_program(text)
    if found.method == "bare":
        before = parse(text[: found.span[0]]) if found.span else tree
        if isinstance(tree, ast.Module) or isinstance(before, ast.Module):
            return True
    usable = found.candidate is not None and isinstance(parse(found.candidate.source), ast.Module)
    return begins_as_program(text) and (not usable or found.method == "bare")


def _after_lone_fence(text: str) -> str | None:
    """The program after a fence that opens the text, where no other fence closes it and it is Python that
    does not parse; else None."""
    opened = _LONE_FENCE.match(text)
    if opened is None or _FENCE.search(text, opened.end()):
        return None
    code = text[opened.end() :]
    return code if begins_as_program(code) and isinstance(parse(code), SyntaxError) else None


def _answer(text: str, budget: Budget) -> Answer:
    """The text without its thinking. A text that is a program has none, though its strings may hold tags."""
    tree = budget.tree(text) if NAME in text else None
    if tree is not None and find_class(tree, NAME) is not None:
        return Answer(text)
    return set_thinking_aside(text, budget)


def _extraction(found: Found, raw: str, warnings: tuple[str, ...]) -> Extraction:
    if found.code is None:
        return _none(found.status or Status.NO_CODE, *warnings)
    start = raw.rfind(found.code)
    return Extraction(
        candidate=Candidate(source=found.code, sha256=sha256_text(found.code)),
        method=found.method,
        warnings=tuple(dict.fromkeys(warnings)),
        span=(start, start + len(found.code)) if start >= 0 else None,
    )


def _none(status: Status, *warnings: str) -> Extraction:
    return Extraction(candidate=None, status=status, method="none", warnings=tuple(dict.fromkeys(warnings)))
