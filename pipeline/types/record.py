"""What all records share: they are frozen, refuse unknown fields, and name a backend alike."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationInfo, WithJsonSchema

from kernelproof.backends import BACKENDS, names


class FrozenRecord(BaseModel):
    """A frozen record. Unknown fields are an error: a record that another version wrote is not guessed at."""

    model_config = ConfigDict(frozen=True, extra="forbid")


STORED = {"stored": True}
"""The context in which stored records are validated: the package of their backend may be gone meanwhile."""


def _known(name: str, info: ValidationInfo) -> str:
    if name not in BACKENDS and info.context != STORED:
        raise ValueError(f"there is no such backend; there are: {', '.join(names())}")
    return name


BackendName = Annotated[
    str, AfterValidator(_known), WithJsonSchema({"enum": list(names()), "type": "string"})
]
