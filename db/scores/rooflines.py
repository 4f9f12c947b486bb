"""The rooflines of some verifications: their bytes, operations and ceilings, which scores do not need."""

from __future__ import annotations

from collections.abc import Collection

from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from kernelproof.db.models import Measurement
from kernelproof.db.rows import batched
from kernelproof.errors import StoreError
from kernelproof.types import Roofline


def rooflines(session: Session, verifications: Collection[int]) -> dict[int, Roofline]:
    """The roofline of each verification that has one.

    Raises StoreError for one that makes no sense.
    """
    found = {}
    for some in batched(sorted(set(verifications))):
        asked = select(Measurement.verification_id, Measurement.roofline).where(
            Measurement.verification_id.in_(some), Measurement.roofline.is_not(None)
        )
        for number, roofline in session.execute(asked).all():
            try:
                found[number] = Roofline.model_validate(roofline)
            except ValidationError as error:
                raise StoreError(f"the roofline of verification {number} cannot be read: edited") from error
    return found
