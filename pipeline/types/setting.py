"""The setting of a result: what must be equal before two results are compared."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from kernelproof.types.base import FrozenRecord


class Setting(FrozenRecord):
    """The rules by which a candidate was judged, and the device on which it ran."""

    backend: str = Field(description="The backend's name.")
    size: str = Field(description="Size preset.")
    device: str | None = Field(
        default=None, description="The GPU's name, else the CPU's; NULL where no device was reached."
    )
    numerics: str = Field(description="`fp32` or `tf32`.")
    purity: str = Field(description="`any` or `own-compute`.")
    own_kernel: bool = Field(description="False when no kernel of the candidate's own was required.")

    @property
    def rules(self) -> dict[str, Any]:
        """Its fields without the device, for columns of these names."""
        return {name: getattr(self, name) for name in RULES}


MEANINGS = {name: field.description or "" for name, field in Setting.model_fields.items()}
"""What each field means, for columns of that name."""
RULES = tuple(name for name in MEANINGS if name != "device")
"""The fields that `VerifySettings`, and rows of runs and verifications, have too."""
