"""The service in this process, on loopback, with a worker that ends everything at once and judges nothing."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from kernelproof.choices import Role
from kernelproof.db.queue import NoResult, WorkerCapabilities
from kernelproof.db.store import Store
from kernelproof.problems import open_suite
from kernelproof.service.app import make_app
from kernelproof.service.schemas import Reader
from kernelproof.service.state import Service, Watch
from kernelproof.types import VerifySettings

BACKENDS = ("cpp", "triton", "cuda")


@contextmanager
def serving_here(store: Store, suite: Path) -> Iterator[str]:
    """The URL of a service that takes references, and is open to all."""
    settings = VerifySettings(backend=BACKENDS[0], trials=1, measure=False)
    reader = Reader(open_suite(suite), settings, True, lock=threading.Lock())
    service = Service(store, reader, Watch(store), 10_000)
    app = make_app(service, hosts=["127.0.0.1"], open_to_all=True)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(app, log_level="critical")
        server = uvicorn.Server(config)
        serving = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        over = threading.Event()
        ending = threading.Thread(target=_end_all, args=(store, over))
        serving.start()
        ending.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            over.set()
            serving.join()
            ending.join()


def _end_all(store: Store, over: threading.Event) -> None:
    """A worker: every second evaluation is a failure of the service."""
    queue, wanted, ended = store.service.queue, WorkerCapabilities(Role.ALL, BACKENDS), 0
    while not over.wait(0.01):
        for each in queue.take("a worker", 100, wanted):
            ended += 1
            result = NoResult("nothing is judged here", infrastructure=ended % 2 == 0)
            queue.finish(each.id, each.token, result)
