"""One judge for each GPU: real workers and services that see GPUs which are not there."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from kernelproof.client import Candidate, Client
from kernelproof.db.gpus import LeasedGpu, StoredGpu
from kernelproof.db.models import Gpu
from kernelproof.db.store import Store, open_store
from kernelproof.workspace import DatabasePlace, address, database_place
from tests.cli import material
from tests.cli.program import Program, kill
from tests.devices.fake_gpus import UUIDS, FakeGpus
from tests.service.conftest import NO_PROGRAM, Running, serving

pytestmark = pytest.mark.ci
A, B, _ = UUIDS
PATIENCE_S = 120.0


@pytest.fixture
def gpus(tmp_path: Path) -> FakeGpus:
    return FakeGpus(tmp_path / "gpus.json", A, B)


def judge(program: Program, gpus: FakeGpus, uuid: str, *options: object) -> subprocess.Popen[str]:
    """A worker that sees one GPU alone."""
    seeing = replace(program, extra={**program.extra, **gpus.environment(uuid)})
    return seeing.start("service", "workers", *options)


@contextmanager
def ended(*processes: subprocess.Popen[str]) -> Iterator[None]:
    """Ends them after the block, however that ends."""
    try:
        yield
    finally:
        for process in processes:
            if process.poll() is None:
                kill(process)


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def until(found: Callable[[], Any]) -> Any:
    """The first answer that is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not (answer := found()):
        assert time.monotonic() < deadline, f"never came: {found()!r}"
        time.sleep(0.05)
    return answer


def place_of(program: Program) -> DatabasePlace:
    given = program.extra.get("KERNELPROOF_DB")
    return database_place(given) if given else program.workspace / "db" / "attempts.sqlite"


def known(program: Program) -> dict[str, StoredGpu]:
    with open_store(place_of(program), create=False) as store:
        return {gpu.uuid: gpu for gpu in store.service.gpus.all()}


def state(program: Program, uuid: str = A) -> str:
    found = known(program).get(uuid)
    return found.state if found else "unknown"


@pytest.fixture(params=["sqlite", "postgresql"])
def cluster(request: pytest.FixtureRequest, program: Program) -> Iterator[Program]:
    """A program whose database is a file, or on a server."""
    if request.param == "sqlite":
        open_store(place_of(program)).close()
        yield program
        return
    postgres = request.getfixturevalue("postgres")
    name = postgres.made()
    yield replace(program, extra={"KERNELPROOF_DB": address(postgres.address(name))})
    postgres.sql(f"DROP DATABASE {name} WITH (FORCE)")


def test_of_two_judges_of_a_gpu_one_measures_until_it_is_killed(cluster: Program, gpus: FakeGpus) -> None:
    first = judge(cluster, gpus, A)
    with ended(first):
        assert f"on GPU 0 (NVIDIA H200, {A})" in line(first)
        second = judge(cluster, gpus, A)
        with ended(second):
            said = line(second)
            assert said.startswith(f"waiting for GPU 0 (NVIDIA H200, {A}): process {first.pid} on ")
            before = known(cluster)[A]
            kill(first)
            assert "worker for" in line(second)
            after = known(cluster)[A]
            assert after.token == before.token + 1 and f":{second.pid}:" in (after.owner or "")
            second.terminate()
            second.communicate(timeout=60)
            assert second.returncode == 0 and state(cluster) == "free"


def taken_elsewhere(store: Store) -> LeasedGpu:
    """The GPU in the hands of a judge of another machine, which is killed at once: only its lease says so."""

    def taken() -> LeasedGpu | StoredGpu:
        over(store)
        return store.service.gpus.take(A, "another-machine:1:0.0:x", name="NVIDIA H200", host="far")

    lease = until(lambda: isinstance(found := taken(), LeasedGpu) and found)
    assert isinstance(lease, LeasedGpu)
    return lease


def over(store: Store) -> None:
    """Lets the lease end, as it does half a minute after its last renewal."""
    store.service.gpus._database.write(lambda session: session.execute(update(Gpu).values(leased=0.0)))


def test_a_judge_of_another_machine_has_its_gpu_until_the_lease_ends(
    cluster: Program, gpus: FakeGpus
) -> None:
    with open_store(place_of(cluster)) as store:
        ghost = taken_elsewhere(store)
        here = judge(cluster, gpus, A)
        with ended(here):
            assert line(here) == f"waiting for GPU 0 (NVIDIA H200, {A}): process 1 on far has it"
            over(store)
            assert "worker for" in line(here)
            assert not store.service.gpus.renew(ghost)
            taken_elsewhere(store)  # as after a silence of this one
            assert line(here).endswith("process 1 on far has it"), "it went on without its lease"
            over(store)
            assert "worker for" in line(here)


def waiting(service: Running) -> dict[str, str | None]:
    """Why judges take nothing, by their GPU."""
    return {each["gpu"]: each["waits"] for each in service.ask("GET", "/v1/workers").json()["workers"]}


@pytest.mark.parametrize("how", ["told", "killed"])
def test_a_machine_with_two_gpus_has_a_judge_for_each(program: Program, gpus: FakeGpus, how: str) -> None:
    both = replace(program, extra=gpus.environment())
    workers = both.start("service", "workers")
    with ended(workers):
        assert line(workers).startswith(f"a judge for each of GPU 0 (NVIDIA H200, {A}), GPU 1 (")
        until(lambda: [state(program, uuid) for uuid in (A, B)] == ["held", "held"])
        owners = {gpu.owner for gpu in known(program).values()}
        assert len(owners) == 2 and not any(f":{workers.pid}:" in str(owner) for owner in owners)
        if how == "killed":
            kill(workers)
        else:
            workers.terminate()
            workers.communicate(timeout=60)
            assert workers.returncode == 0
        assert program.left_after(30.0) == {}
        assert [state(program, uuid) for uuid in (A, B)] == ["free", "free"]


def test_a_judge_that_is_killed_is_started_again(program: Program, gpus: FakeGpus) -> None:
    workers = replace(program, extra=gpus.environment()).start("service", "workers")
    with ended(workers):
        assert line(workers).startswith("a judge for each of ")
        until(lambda: [state(program, uuid) for uuid in (A, B)] == ["held", "held"])
        before = {uuid: gpu.owner or "" for uuid, gpu in known(program).items()}
        os.kill(int(before[A].split(":")[1]), signal.SIGKILL)
        until(lambda: known(program)[A].owner not in (None, before[A]) and state(program) == "held")
        assert known(program)[B].owner == before[B]


def stranger_on(service: Running, gpus: FakeGpus, pid: int, *ours: int) -> None:
    """Has a foreign process on the GPU, sees that the judge takes nothing meanwhile, and takes it away."""
    gpus.set(A, processes=[*ours, pid])
    waits = until(lambda: waiting(service).get(A))
    assert waits.startswith(f"process {pid}") and waits.endswith(f"computes on {A}")
    number = service.send(wait=1)["id"]
    assert service.ask("GET", f"/v1/evaluations/{number}").json()["state"] == "queued"
    gpus.set(A, processes=list(ours))
    found = service.ask("GET", f"/v1/evaluations/{number}", params={"wait": PATIENCE_S / 4}).json()
    assert found["state"] == "done"
    until(lambda: waiting(service)[A] is None)


def test_no_evaluation_is_taken_beside_a_foreign_process(
    program: Program, suite: Path, gpus: FakeGpus
) -> None:
    with serving(program, suite, "--no-worker") as service, subprocess.Popen(["sleep", "1000"]) as stranger:
        gpus.set(A, processes=[stranger.pid])
        worker = judge(program, gpus, A)
        with ended(worker):
            try:
                stranger_on(service, gpus, stranger.pid)  # when nothing of the judge's is on the GPU yet
                stranger_on(service, gpus, stranger.pid, worker.pid)
                [seen] = service.ask("GET", "/v1/workers").json()["gpus"]
                assert (seen["uuid"], seen["state"]) == (A, "held")
            finally:
                stranger.kill()


def test_the_work_of_a_gpu_that_turns_bad_is_done_elsewhere(
    program: Program, suite: Path, gpus: FakeGpus
) -> None:
    sources = (material.wrong(), NO_PROGRAM, f"{NO_PROGRAM} either")
    candidates = [Candidate(source, "relu") for source in sources]
    with serving(program, suite, "--no-worker") as service, Client(service.url) as client:
        bad = judge(program, gpus, A, "--places", 1)
        with ended(bad):
            sent = client.submit(candidates)
            until(lambda: client.get(sent[0].id).state == "running")
            gpus.set(A, xids=[79])
            until(lambda: state(program) == "set aside")
            assert {client.get(each.id).state for each in sent} <= {"queued", "running", "done"}
            good = judge(program, gpus, B, "--places", 2)
            with ended(good):
                found = client.evaluate_many(candidates)
                assert [each.status for each in found] == ["wrong_output", "no_code", "no_code"]
                assert len({each.raw["result"]["attempt"] for each in found}) == len(program.attempts()) == 3
                aside = {A: "it is set aside: the driver reported Xid 79", B: None}
                until(lambda: waiting(service) == aside)
                assert 'kernelproof_gpus{state="set aside"} 1.0' in service.ask("GET", "/metrics").text
            put_back_and_refused(program, gpus)


def put_back_and_refused(program: Program, gpus: FakeGpus) -> None:
    """An operator puts the GPU back; as there is none, the canary does not pass."""
    listed = program.run("service", "gpus").stdout
    assert f"{A}  NVIDIA H200  on " in listed and "set aside: the driver reported Xid 79" in listed
    program.run("service", "gpus", "--put-back", A[:9])
    reason = until(lambda: known(program)[A].reason)
    assert reason.startswith("it failed the canary after it was put back: ")
    assert "is not set aside" in program.run("service", "gpus", "--put-back", B, code=2).stderr
    assert "no judge has seen" in program.run("service", "gpus", "--put-back", "GPU-x", code=2).stderr
