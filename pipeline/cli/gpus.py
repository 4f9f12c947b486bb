"""`kernelproof gpus`: the GPUs on which judges of the evaluation service measure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

from kernelproof.cli.declaring import Option
from kernelproof.cli.options import JsonOption, StorageOptions
from kernelproof.errors import UsageError
from kernelproof.report.plain import say

if TYPE_CHECKING:
    from kernelproof.db.gpus import Gpus, StoredGpu


def gpus(
    *,
    set_aside: Annotated[
        str | None, Option("Have no judge use this GPU, until it is put back.", metavar="<uuid>")
    ] = None,
    put_back: Annotated[
        str | None,
        Option("Let judges use this GPU again; the next one asks the canary first.", metavar="<uuid>"),
    ] = None,
    storage: StorageOptions,
    as_json: JsonOption = False,
) -> None:
    """List the GPUs of the evaluation service: which judge holds each, and why one is set aside.

    A UUID may be shortened, as long as it names one GPU.
    """
    from kernelproof.cli.service_storage import stored_service

    changes = put_back is not None or set_aside is not None
    with stored_service(storage.database, only_read=not changes) as service:
        known = service.gpus
        if set_aside is not None:
            known.set_aside(_one(known, set_aside), "an operator set it aside")
        if put_back is not None:
            _put_back(known, put_back)
        found = known.all()
    if as_json:
        print(json.dumps([gpu.model_dump() for gpu in found]))
        return
    for gpu in found:
        say(f"{gpu.uuid}  {gpu.name}  on {gpu.host}  {_state(gpu)}")
    if not found:
        say("no judge has seen a GPU yet; start some with kernelproof workers")


def _put_back(known: Gpus, uuid: str) -> None:
    chosen = _one(known, uuid)
    if not known.put_back(chosen):
        raise UsageError(f"{chosen} is not set aside; kernelproof gpus lists those that are")


def _one(known: Gpus, beginning: str) -> str:
    """The UUID that begins so. Raises UsageError where none or several do."""
    found = [gpu.uuid for gpu in known.all() if gpu.uuid.startswith(beginning)]
    if len(found) != 1:
        what = "several GPUs begin" if found else "no judge has seen a GPU that begins"
        raise UsageError(f"{what} with {beginning!r}; kernelproof gpus lists them")
    return found[0]


def _state(gpu: StoredGpu) -> str:
    if gpu.state == "set aside":
        return f"set aside: {gpu.reason}"
    doubt = ", put back and not yet proven" if gpu.unproven else ""
    if gpu.owner is None:
        return gpu.state + doubt
    process = "".join(gpu.owner.split(":")[1:2])
    return f"held by process {process}, silent for {gpu.silent_s:.0f} s{doubt}"
