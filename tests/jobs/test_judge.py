"""The judge of this process: which stored verdicts answer a job, what is tried again, what is stored."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import anyio
import pytest

from kernelproof.db.columns import utc_now
from kernelproof.db.store import Store
from kernelproof.errors import MachineError
from kernelproof.jobs import AppendTo, Job, Judge, NewAttempt, Purpose, Verdict
from kernelproof.jobs.judge import files_run
from kernelproof.jobs.leases import LeaseKeeper
from kernelproof.types import Problem, Status, Verification, VerifySettings
from kernelproof.verifier.engine.engine import Engine
from kernelproof.verifier.engine.stop import Stop, Stopped
from kernelproof.version import VERIFIER, __version__
from tests.db import samples

SETTINGS = VerifySettings(backend="cpp", size="full")
RUN = files_run(SETTINGS, "given")
OLD = f"{__version__} policy:0"
WRONG, RIGHT, LOST = Status.WRONG_OUTPUT, Status.CORRECT, Status.INFRASTRUCTURE_ERROR


class Machine(Engine):
    """An engine without processes that gives these verdicts, then correct ones. None: this machine fails."""

    def __init__(self, cache: Path, *statuses: Status | None, verifier: str = VERIFIER) -> None:
        super().__init__(cache)
        self._statuses, self._verifier = list(statuses), verifier
        self.verified = 0
        self._lock = threading.Lock()

    def verify(
        self, source: str, problem: Problem, settings: VerifySettings, *_: object, **__: object
    ) -> Verification:
        with self._lock:
            self.verified += 1
            status = self._statuses.pop(0) if self._statuses else RIGHT
        if status is None:
            raise MachineError("no compiler")
        made = samples.verification(problem, status, verify=settings)
        return made.model_copy(update={"verifier": self._verifier, "created": utc_now()})


@pytest.fixture
def store(tmp_path: Path, empty_database: Path) -> Iterator[Store]:
    with samples.new_store(tmp_path, empty_database) as store:
        yield store


def given(text: str = samples.SOURCE, *, shared: bool = True, purpose: Purpose = Purpose.VERDICT) -> Job:
    job = Job.of_text(text, samples.problem(), SETTINGS)
    keep = NewAttempt(RUN, samples.response(text), shared=shared)
    return Job(job.problem, job.extraction, SETTINGS, keep, purpose)


def stored_attempt(store: Store) -> int:
    """One that was wrong under the settings."""
    return samples.judge(store, samples.problem(), samples.settings(verify=SETTINGS), WRONG)[0]


@pytest.mark.parametrize(("lost", "status"), [(2, RIGHT), (3, LOST)])
def test_what_our_side_loses_is_judged_three_times_at_most(
    tmp_path: Path, store: Store, lost: int, status: Status
) -> None:
    machine = Machine(tmp_path, *[LOST] * lost)
    verdict = Judge(machine, store).judge(given())
    assert (verdict.status, machine.verified) == (status, 3)
    assert Judge(machine, store).judge(given()).reused is (status is RIGHT)


def test_one_content_is_judged_once_where_it_is_shared_and_once_a_job_where_not(
    tmp_path: Path, store: Store
) -> None:
    machine = Machine(tmp_path)
    for _ in range(2):  # the second judge is the next command's
        judge = Judge(machine, store)
        verdicts = [judge.judge(given(shared=False)) for _ in range(3)]
        assert len({verdict.attempt_id for verdict in verdicts}) == 3
    assert all(verdict.reused for verdict in verdicts) and machine.verified == 3
    assert Judge(machine, store).judge(given()).attempt_id == 3
    assert Judge(machine, store).judge(given(purpose=Purpose.MEASUREMENT)).attempt_id == 4


def test_a_text_without_a_program_is_kept_and_not_verified(tmp_path: Path, store: Store) -> None:
    machine = Machine(tmp_path)
    verdict = Judge(machine, store).judge(given("no idea"))
    assert (verdict.status, verdict.verification, machine.verified) == (Status.NO_CODE, None, 0)
    assert store.load_attempt(verdict.attempt_id or 0).status is Status.NO_CODE


def test_a_verdict_that_comes_after_the_stop_is_not_stored(tmp_path: Path, store: Store) -> None:
    stop = Stop()
    stop.ask()
    with pytest.raises(Stopped):
        Judge(Machine(tmp_path), store).judge(given(), stop=stop)
    assert store.latest_attempt_id() is None


def test_a_machine_that_fails_stores_nothing(tmp_path: Path, store: Store) -> None:
    with pytest.raises(MachineError, match="no compiler"):
        Judge(Machine(tmp_path, None), store).judge(given())
    assert store.latest_attempt_id() is None


def submitted(store: Store, machine: Machine, job: Job, *, wait: bool = True) -> Verdict | None:
    """The verdict that another command would get."""

    async def main() -> Verdict | None:
        assert isinstance(job.keep, AppendTo)
        leases, attempt = LeaseKeeper(store), store.load_attempt(job.keep.attempt_id)
        async with anyio.create_task_group() as group:
            leases.start(group)
            verdict = await Judge(machine, store, leases).submit(job, attempt, wait=wait)
            group.cancel_scope.cancel()
        leases.close()
        return verdict

    return anyio.run(main)


def appended(number: int, purpose: Purpose = Purpose.VERDICT, **rules: object) -> Job:
    job = given()
    keep = AppendTo(number, finish=True)
    return Job(job.problem, job.extraction, SETTINGS, keep, purpose, **rules)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("purpose", "rules", "reused"),
    [
        (Purpose.VERDICT, {}, True),
        (Purpose.VERDICT, {"again": frozenset({WRONG})}, False),
        (Purpose.VERDICT, {"again": frozenset({WRONG}), "since": "2000"}, True),
        (Purpose.CURRENT, {}, True),
        (Purpose.MEASUREMENT, {}, False),
        (Purpose.MEASUREMENT, {"since": "2000"}, True),
    ],
)
def test_which_stored_verdicts_answer(
    tmp_path: Path, store: Store, purpose: Purpose, rules: dict[str, object], reused: bool
) -> None:
    number, machine = stored_attempt(store), Machine(tmp_path)
    verdict = submitted(store, machine, appended(number, purpose, **rules))
    assert verdict is not None and verdict.reused is reused and machine.verified == (not reused)
    assert store.load_attempt(number).status is verdict.status


def test_a_verdict_of_another_policy_is_not_current(tmp_path: Path, store: Store) -> None:
    number = samples.begin(store, samples.problem(), samples.settings(verify=SETTINGS))
    old, machine = Machine(tmp_path, WRONG, verifier=OLD), Machine(tmp_path)
    store.record_verification(number, old.verify("", samples.problem(), SETTINGS))
    assert store.load_attempt(number).verdict_for(SETTINGS) is not None
    verdict = submitted(store, machine, appended(number, Purpose.CURRENT))
    assert verdict is not None and not verdict.reused


def test_a_status_that_a_killed_command_left_is_mended(tmp_path: Path, store: Store) -> None:
    number = stored_attempt(store)
    right = Machine(tmp_path).verify("", samples.problem(), SETTINGS)
    store.record_verification(number, right)  # killed before the attempt was finished
    verdict = submitted(store, Machine(tmp_path), appended(number))
    assert verdict is not None and verdict.reused
    assert store.load_attempt(number).status is RIGHT


def test_ten_commands_at_once_judge_an_attempt_once(tmp_path: Path, store: Store) -> None:
    number, machine = stored_attempt(store), Machine(tmp_path)
    job = appended(number, Purpose.MEASUREMENT, since=utc_now())
    with ThreadPoolExecutor(10) as pool:
        verdicts = list(pool.map(lambda _: submitted(store, machine, job), range(10)))
    assert [verdict and verdict.status for verdict in verdicts] == [RIGHT] * 10 and machine.verified == 1


def test_where_it_may_not_wait_another_command_has_it(tmp_path: Path, store: Store) -> None:
    number, machine = stored_attempt(store), Machine(tmp_path)
    assert store.lease_stored(number, "another").granted
    job = appended(number, Purpose.MEASUREMENT)
    assert submitted(store, machine, job, wait=False) is None and machine.verified == 0
    threading.Timer(0.3, partial(store.leases.give_back, "another")).start()
    assert submitted(store, machine, job) is not None
