"""Errors of a model's server, in whatever shape they come, and what they mean: retry, give up, or stop."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernelproof.errors import ProviderError

_LONGEST = 2000
"""Characters that are kept of a message."""
_MARKUP = re.compile(r"\s*<")


class AnswerError(ProviderError):
    """An error where an answer should be: in a reply with status 200, or in the middle of a stream."""

    def __init__(self, error: object, context: str) -> None:
        """`error` is the server's value; `context` says where it stood, for the message."""
        self.complaint, self.context = complaint(error), context
        super().__init__(f"{context}: {self.complaint.message}")


@dataclass(frozen=True)
class Complaint:
    """An error as the server words it."""

    message: str
    """The server's words; empty where it has none for people."""
    status: int | None = None
    """The HTTP status. Some servers put it into the body of a reply with status 200."""
    codes: frozenset[str] = frozenset()
    """What names the error for programs: `insufficient_quota`, `rate_limit_error` ..."""
    parameter: str = ""
    """The field of the request that the server names, as it spells it: `stop[0]`."""
    says_something: bool = True
    """False where there is nothing but a status."""


def complaint_of_reply(status: int, reason: str, body: bytes) -> Complaint:
    """The error in an HTTP reply. A page of HTML has only its status line to say."""
    text = body.decode("utf-8", "replace").strip()
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        value = "" if _MARKUP.match(text) else text
    found = complaint(value)
    line = f"HTTP {status} {reason}".rstrip()
    says_something = bool(found.message) and found.message not in line
    message = f"{found.message} (HTTP {status})" if says_something else line
    return Complaint(message, status, found.codes, found.parameter, says_something)


def complaint(value: object) -> Complaint:
    """The error in a JSON value, as OpenAI, OpenRouter, Google, Mistral, vLLM, FastAPI ... shape it."""
    if isinstance(value, list):
        value = next((each for each in value if isinstance(each, Mapping)), "")
    if not isinstance(value, Mapping):
        return Complaint(str(value or "")[:_LONGEST])
    inner = value.get("error")
    fields: Mapping[str, Any] = {**value, **inner} if isinstance(inner, Mapping) else value
    named = _invalid_field(fields)
    message = _words(fields) or (inner if isinstance(inner, str) else "") or (named or ("", ""))[1]
    metadata = fields.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    if isinstance(raw, str) and raw.strip():  # OpenRouter: what the server behind it said
        message = f"{message}: {raw.strip()}"
    code = fields.get("code")
    status = int(str(code)) if re.fullmatch("[45][0-9][0-9]", str(code)) else None
    codes = {each for each in (code, fields.get("type"), fields.get("status")) if isinstance(each, str)}
    parameter = fields.get("param")
    if not isinstance(parameter, str):
        parameter = named[0] if named else ""
    return Complaint(message[:_LONGEST], status, frozenset(codes), parameter)


def _words(fields: Mapping[str, Any]) -> str:
    for name in ("message", "detail", "msg", "error_description", "title"):
        if isinstance(fields.get(name), str) and fields[name].strip():
            return str(fields[name]).strip()
    return ""


def _invalid_field(fields: Mapping[str, Any]) -> tuple[str, str] | None:
    """Name and message of the first field that a validating server does not accept, as FastAPI has it:
    `{"detail": [{"loc": ["body", "top_k"], "msg": "Extra inputs are not permitted"}]}`.
    """
    found = fields.get("detail")
    if found is None and isinstance(fields.get("message"), Mapping):
        found = fields["message"].get("detail")
    first = found[0] if isinstance(found, list) and found else None
    if not isinstance(first, Mapping):
        return None
    place = first.get("loc")
    names = [each for each in place if isinstance(each, str)] if isinstance(place, list) else []
    name = ".".join(names[1:] if names[:1] == ["body"] else names)
    message = first.get("msg")
    return name, f"{name}: {message}" if isinstance(message, str) else name


_QUOTA = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "exceeded_current_quota_error"}
)
_BUSY = frozenset({"rate_limit_exceeded", "rate_limit_error", "too_many_requests", "RESOURCE_EXHAUSTED"})
_FILTERED = frozenset({"content_filter", "content_policy_violation", "invalid_prompt"})
"""Codes of errors that one prompt's content leads to."""
_REFUSED = _FILTERED | {"invalid_request_error"}
"""Codes of errors in a reply with status 200 that the question itself leads to."""
_LENGTHS = frozenset({"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"})
_NO_MONEY = re.compile(r"insufficient (account )?(balance|credit|funds)", re.IGNORECASE)
_BAD_KEY = re.compile(
    r"api[ _-]?key.{0,40}(not valid|invalid|incorrect|missing|expired)"
    r"|(invalid|incorrect|missing|expired).{0,20}api[ _-]?key",
    re.IGNORECASE,
)
_FLAGGED = re.compile(r"moderation|flagged|content.?(policy|filter)|safety", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"context.{0,12}length|context.window|maximum context|too many (input |prompt )?tokens|prompt is too long"
    r"|exceeds? the (available |maximum )?(context|number of tokens)|input (token count|is too long)",
    re.IGNORECASE,
)
_PASSES = re.compile(r"overload|busy|capacity|unavailable|time.?out|try again|rate|upstream", re.IGNORECASE)
_NO_MODEL = re.compile(
    r"model.{0,80}(does not exist|not found|not exist|not available|unknown)|(unknown|invalid|no such) model"
    r"|server is pinned to",  # transformers
    re.IGNORECASE | re.DOTALL,
)
_COMPLAINS = re.compile(
    r"support|unknown|unrecogni[sz]ed|unexpected|permitted|allowed|invalid|deprecated|cannot|must|should"
    r"|only|too (large|big|small|high|low|many)|exceed|range|at most|at least|(less|greater|more) than"
    r"|between",
    re.IGNORECASE,
)
_UNKNOWN = re.compile(r"support|unknown|unrecogni[sz]ed|unexpected|permitted|extra", re.IGNORECASE)
_OURS = frozenset({"model", "messages", "input", "instructions"})
FLAGS = {
    "temperature": "--temperature",
    "max_tokens": "--max-tokens",
    "max_completion_tokens": "--max-tokens",
    "max_output_tokens": "--max-tokens",
    "reasoning_effort": "--reasoning-effort",
    "reasoning": "--reasoning-effort",
}
"""Fields of the request to the option that sets them; others are set by --param."""
_INSTEAD = {"max_completion_tokens": "--param max_tokens=N", "max_tokens": "--max-tokens N"}


@dataclass(frozen=True)
class Reaction:
    """What to do about an error."""

    fatal: str | None = None
    """Why no question can be answered, and what to change."""
    retry: bool = False
    """Ask this question again."""
    busy: bool = False
    """The server is asked too often (429)."""
    of_question: bool = False
    """The error is about this question's prompt; others may be answered."""
    parameter: str | None = None
    """The field of the request that the server does not accept, where that is what it says."""
    unexplained: bool = False
    """The server failed and did not say at what: perhaps at the length of the prompt."""


def reaction_to(
    complaint: Complaint, message: str, sent: Mapping[str, object], key_variable: str, *, has_key: bool = True
) -> Reaction:
    """What an error means. `message` is the server's, safe to show; `sent` the fields of the request;
    `has_key`: whether a key was sent."""
    status, codes = complaint.status, complaint.codes
    if codes & _QUOTA or _NO_MONEY.search(message):
        return Reaction(fatal=f"the quota is used up: {message}")
    if status == 402:
        return Reaction(fatal=f"{message}; the account needs credit")
    if status == 401 or "invalid_api_key" in codes or (status in (400, 403) and _BAD_KEY.search(message)):
        what = "check the key in" if has_key else "no key is set: put one into"
        return Reaction(fatal=f"{message}; {what} {key_variable} (--key-variable names another)")
    if status == 403:
        if _FLAGGED.search(message):  # a gateway refused this prompt
            return Reaction(of_question=True)
        return Reaction(fatal=f"{message}; the key in {key_variable} may not use this model or server")
    if status in (404, 405, 410) or "model_not_found" in codes:
        where = "the model's name (--model) and the base URL (--base-url; most end in /v1)"
        return Reaction(fatal=f"{message}; check {where}")
    if status in (400, 422):
        return _of_a_bad_request(complaint, message, sent)
    busy = status == 429 or (status is None and bool(codes & _BUSY))
    too_long = status == 413 or (status is None and _is_too_long(complaint))
    passes = status is None and not codes & _REFUSED and not too_long
    return Reaction(
        of_question=too_long or (status is None and not busy and bool(codes & _FILTERED)),
        retry=busy or passes or status in (408, 409) or (status or 0) >= 500,
        busy=busy,
        unexplained=(passes and not busy and not _PASSES.search(message))
        or (status == 500 and not complaint.says_something),
    )


def _of_a_bad_request(complaint: Complaint, message: str, sent: Mapping[str, object]) -> Reaction:
    if _is_too_long(complaint):
        return Reaction(of_question=True)
    parameter = _field(complaint, sent)
    if complaint.parameter == "model" or (parameter is None and _NO_MODEL.search(message)):
        return Reaction(fatal=f"{message}; check the model's name (--model)")
    if parameter is None:
        return Reaction(of_question=bool(complaint.codes & _FILTERED or _FLAGGED.search(message)))
    unknown = parameter in _INSTEAD and _UNKNOWN.search(" ".join((message, *complaint.codes)))
    instead = f", or use {_INSTEAD[parameter]}" if unknown else ""
    flag = FLAGS.get(parameter, f"--param {parameter}")
    return Reaction(
        fatal=f"the server does not accept {parameter}: change or leave out {flag}{instead}. {message}",
        parameter=parameter,
    )


def _is_too_long(complaint: Complaint) -> bool:
    return bool(complaint.codes & _LENGTHS) or _TOO_LONG.search(complaint.message) is not None


def _field(complaint: Complaint, sent: Mapping[str, object]) -> str | None:
    """The field of the request that an error is about, when it is one that was set."""
    ours = [name for name in sent if name not in _OURS]
    if complaint.parameter:
        root = re.split(r"[.\[]", complaint.parameter, maxsplit=1)[0]
        return root if root in ours else None
    complains = _COMPLAINS.search(complaint.message) is not None
    for name in sorted(ours, key=len, reverse=True):
        word = rf"{re.escape(name)}(?:ing)?" if name == "stream" else re.escape(name)
        spelled = re.search(rf"(['\"`]?)(?<!\w){word}(?!\w)\1", complaint.message, re.IGNORECASE)
        if spelled and (complains or spelled[1] or "_" in name):
            return name
    return None
