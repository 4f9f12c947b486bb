"""`kernelproof callers`: who may use the evaluation service."""

from __future__ import annotations

import json
from typing import Annotated

from kernelproof.bounds import QUEUE
from kernelproof.cli.commands import CommandLine
from kernelproof.cli.declaring import Argument, Option
from kernelproof.cli.options import JsonOption, StorageOptions
from kernelproof.report.plain import say

callers_app = CommandLine(help="Callers of the evaluation service, and their tokens.")
NameArgument = Annotated[str, Argument("The caller's name.", metavar="NAME")]


@callers_app.command()
def add(
    name: NameArgument,
    *,
    quota: Annotated[
        int | None, Option("Evaluations of the caller that may wait or run [default: no limit].", QUEUE)
    ] = None,
    storage: StorageOptions,
) -> None:
    """Give a caller a token. It is shown once, and only its hash is stored."""
    from kernelproof.db.store import open_store

    with open_store(storage.database) as store:
        say(store.service.callers.add(name, quota))


@callers_app.command()
def revoke(name: NameArgument, *, storage: StorageOptions) -> None:
    """Accept a caller's token no more."""
    from kernelproof.cli.service_storage import stored_service

    with stored_service(storage.database, only_read=False) as service:
        service.callers.revoke(name)
        say(f"the token of {name} is accepted no more")


@callers_app.command("list")
def list_(*, storage: StorageOptions, as_json: JsonOption = False) -> None:
    """List callers, those whose token was revoked too."""
    from kernelproof.cli.service_storage import stored_service

    with stored_service(storage.database, only_read=True) as service:
        found = service.callers.all()
    if as_json:
        print(json.dumps([caller.model_dump() for caller in found]))
        return
    for caller in found:
        quota = "no quota" if caller.quota is None else f"quota {caller.quota:,}"
        say(f"{caller.name}  {quota}  {'revoked ' + caller.revoked if caller.revoked else 'accepted'}")
    if not found:
        say("no caller has a token: the service is open to everybody on its machine, and to nobody else")
