"""`kernelproof serve`: the report's pages in a browser, from the database as it is now."""

from __future__ import annotations

from typing import Annotated

from kernelproof.choices import PORT
from kernelproof.cli.declaring import Option
from kernelproof.cli.options import StorageOptions
from kernelproof.report.plain import say

DEFAULT_PORT = 8177


def serve(
    *,
    host: Annotated[
        str, Option("The address to listen on. Other machines reach any but this one.")
    ] = "127.0.0.1",
    port: Annotated[int, Option("The port to listen on; 0 takes one that is free.", PORT)] = DEFAULT_PORT,
    storage: StorageOptions,
) -> None:
    """Show the results in a browser, and what is new while runs go on. Ctrl-C ends it.

    It shows what kernelproof report writes, and a page for every attempt. It only reads.
    It needs the packages of the extra serve, and says how to install them.
    """
    from kernelproof.report.web import require

    require()
    from kernelproof.report.web.result_server import serve as run
    from kernelproof.runs.bundles.writer import bundle_bytes

    database = storage.database

    def ready(address: str, public: bool) -> None:
        say(f"{address} shows {database}; Ctrl-C ends it")
        if public:
            say("every machine that reaches this address can read all of it", err=True)

    run(database, host, port, ready, bundle_bytes)
