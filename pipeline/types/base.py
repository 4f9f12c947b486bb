"""What all records share: frozen, and closed to unknown fields."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class FrozenRecord(BaseModel):
    """A frozen record. Unknown fields are an error: a record that another version wrote is not guessed at."""

    model_config = ConfigDict(frozen=True, extra="forbid")
