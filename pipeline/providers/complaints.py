"""Errors of a model's server, in whatever shape they come."""

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
