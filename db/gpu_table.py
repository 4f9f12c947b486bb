"""The table of GPUs that judges of the evaluation service measure on."""

from __future__ import annotations

from sqlalchemy.orm import Mapped, mapped_column

from kernelproof.db.base import Base
from kernelproof.db.columns import count, created_at, number, truth, words
from kernelproof.db.types import Words


class Gpu(Base):
    """GPUs that judges of the evaluation service have seen. One judge in the whole cluster holds a GPU. Rows
    change and stay."""

    __tablename__ = "gpus"

    uuid: Mapped[str] = mapped_column(Words, primary_key=True, comment="`GPU-...`, as the driver names it.")
    name: Mapped[str] = words("The GPU's product name.")
    host: Mapped[str] = words("Name of the machine on which a judge saw it last.")
    owner: Mapped[str | None] = words("Machine and process of the judge that holds it; NULL: none does.")
    token: Mapped[int] = count(
        "Fencing token: it counts the takings. A verdict of a judge with an older one is refused."
    )
    leased: Mapped[float | None] = number("Unix time until which it is held, unless the judge renews that.")
    renewed: Mapped[float] = number("Unix time of its judge's last sign of life, by the database's clock.")
    set_aside: Mapped[str | None] = words("Why no judge takes it; NULL: any may.")
    unproven: Mapped[bool] = truth("True after an operator put it back, until it has passed the canary.")
    created: Mapped[str] = created_at()
