"""Content addresses: everything stored once is stored under the SHA-256 of its bytes."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def sha256_text(text: str) -> str:
    """Hex SHA-256 of a text's UTF-8 bytes (lone surrogates are kept, not lost)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def sha256_json(value: Any) -> str:
    """Hex SHA-256 of a JSON value in canonical form: sorted keys, no spaces, so equal values hash equal."""
    return sha256_text(json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False))
