"""The table of GPUs that judges of the evaluation service measure on."""

from __future__ import annotations

from sqlalchemy.orm import Mapped, mapped_column

from kernelproof.db.base import Base
from kernelproof.db.columns import count, created_at, number, truth, words
from kernelproof.db.types import Words


class Gpu(Base):
    """GPUs that judges of the evaluation service have seen. At most one judge in the whole cluster
    holds a GPU. Rows change, and are not deleted."""

    __tablename__ = "gpus"

    uuid: Mapped[str] = mapped_column(Words, primary_key=True, comment="`GPU-...`, as the driver names it.")
    name: Mapped[str] = words("The GPU's product name.")
    host: Mapped[str] = words("Name of the machine on which a judge saw it last.")
    owner: Mapped[str | None] = words("Machine and process of the judge that holds it; NULL: no judge does.")
    token: Mapped[int] = count(
        "Fencing token: how often the GPU was taken. A verdict of a judge with an older token is refused."
    )
    leased: Mapped[float | None] = number(
        "Unix time at which the judge's lease ends, unless the judge renews it."
    )
    renewed: Mapped[float] = number("Unix time of its judge's last sign of life, by the database's clock.")
    set_aside: Mapped[str | None] = words("The reason why no judge takes the GPU; NULL: any judge may.")
    unproven: Mapped[bool] = truth(
        "True after an operator has put the GPU back, until it has passed the canary."
    )
    created: Mapped[str] = created_at()
