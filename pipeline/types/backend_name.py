"""The name of a backend in records."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, ValidationInfo, WithJsonSchema

from kernelproof.backends import BACKENDS, names

STORED = {"stored": True}
"""The context in which stored records are validated: the package of their backend may be gone meanwhile."""


def _known(name: str, info: ValidationInfo) -> str:
    if name not in BACKENDS and info.context != STORED:
        raise ValueError(f"there is no such backend; there are: {', '.join(names())}")
    return name


BackendName = Annotated[
    str, AfterValidator(_known), WithJsonSchema({"enum": list(names()), "type": "string"})
]
