"""A harness for tests: runs jobs in one tier, asked by lines of JSON, and holds what a job must not reach.

Its environment and its memory hold a key, it listens on a TCP port and two unix sockets, and keeps an
inheritable file open. It runs in a process of its own, as root or as an ordinary user, so that every tier
can be tried by either.
"""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

from kernelproof.verifier.sandbox import Job, Limits, Process, probe, python_paths, remove_scratch, start

KEY = "sk-canary-" + os.urandom(8).hex()
ROOM = Path(sys.argv[1] if __name__ == "__main__" else ".")
"""A directory of this driver, open to everybody, for scratch directories and what lies beside them."""


def main() -> None:
    os.environ["OPENAI_API_KEY"] = KEY
    secrets = _hold_secrets()
    tier = os.environ["KERNELPROOF_SANDBOX"]
    confinement = probe(unsafe=tier == "D")
    _answer({"tier": confinement.tier, "layers": dict(confinement.layers)})
    for line in sys.stdin:
        _answer(_serve(json.loads(line), secrets, unsafe=tier == "D"))


def _hold_secrets() -> dict[str, str]:
    """What a job is told of us: where to look for what it must not get."""
    database = ROOM / "database"
    database.write_text(KEY)
    os.set_inheritable(os.open(database, os.O_RDONLY), True)
    neighbour = ROOM / "neighbour"
    neighbour.mkdir(mode=0o755)
    (neighbour / "answer").write_text(KEY)
    tcp = socket.create_server(("127.0.0.1", 0))
    abstract, path = f"kernelproof-test-{os.getpid()}", str(ROOM / "socket")
    for address in ("\0" + abstract, path):
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(address)
        listener.listen()
        listener.detach()
    Path(path).chmod(0o777)
    port = str(tcp.getsockname()[1])
    tcp.detach()
    return {
        "FAULT_DATABASE": str(database),
        "FAULT_NEIGHBOUR": str(neighbour),
        "FAULT_HARNESS": str(os.getpid()),
        "FAULT_PORT": port,
        "FAULT_ABSTRACT": abstract,
        "FAULT_SOCKET": path,
    }


def _serve(request: dict[str, Any], secrets: dict[str, str], *, unsafe: bool) -> dict[str, Any]:
    scratch = ROOM / f"scratch-{request['mark']}"
    scratch.mkdir()
    script = Path(request["script"])
    job = Job(
        argv=(sys.executable, "-I", str(script)),
        scratch=scratch,
        read_only=(*python_paths(), script),
        env={**secrets, "FAULT_MARK": request["mark"]},
        limits=Limits(**request["limits"]),
    )
    process: Process = start(job, unsafe=unsafe)
    if request["detach"]:
        return {"pid": process.pid}
    outcome = process.wait(None)
    assert outcome is not None
    survivors = marked(request["mark"])
    remove_scratch(scratch)
    intact = (ROOM / "database").read_text() == KEY and [
        path.name for path in (ROOM / "neighbour").iterdir()
    ] == ["answer"]
    return {**dataclasses.asdict(outcome), "survivors": survivors, "intact": intact}


def marked(mark: str) -> list[int]:
    """The processes whose environment holds the mark."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"FAULT_MARK={mark}".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def _answer(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main()
