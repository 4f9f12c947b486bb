"""The name of a backend in records."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from pipeline.backends import names


def _known(name: str) -> str:
    if name not in names():
        raise ValueError(f"there is no such backend; there are: {', '.join(names())}")
    return name


BackendName = Annotated[
    str, AfterValidator(_known), WithJsonSchema({"enum": list(names()), "type": "string"})
]
