"""Starting, waiting, killing: from one thread and from many, with and without a harness left."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kernelproof.errors import SandboxError
from kernelproof.verifier.sandbox import Job, Limits, python_paths, run, start
from kernelproof.verifier.sandbox.process import plain_text
from tests.sandbox.conftest import Driver
from tests.sandbox.driver import marked

TIERS = ("A", "B", "C1", "C2")


def python(scratch: Path, code: str, **settings: object) -> Job:
    return Job((sys.executable, "-I", "-c", code), scratch, python_paths(), **settings)  # type: ignore[arg-type]


def test_wait_gives_none_while_the_job_runs_and_kill_gives_its_end(tmp_path: Path) -> None:
    with start(python(tmp_path, "import time; time.sleep(1000)")) as process:
        assert process.wait(0.05) is None
        outcome = process.kill("enough")
        assert (outcome.state, outcome.reason) == ("killed", "enough")
        assert process.kill("again") == outcome == process.wait(0)


def test_killing_an_ended_job_keeps_its_own_outcome(tmp_path: Path) -> None:
    process = start(python(tmp_path, "print('done')"))
    ended = process.wait(None)
    assert ended is not None and ended.state == "ok" and ended.stdout == "done\n"
    assert process.kill() == ended


def test_leaving_the_block_kills(tmp_path: Path) -> None:
    with start(python(tmp_path, "import time; time.sleep(1000)")) as process:
        pass
    assert process.wait(0) is not None
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_a_sandbox_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    started = []
    job = python(tmp_path, "import time; time.sleep(0.3); print('alive')")
    thread = threading.Thread(target=lambda: started.append(start(job)))
    thread.start()
    thread.join()
    outcome = started[0].wait(20)
    assert outcome is not None and outcome.stdout == "alive\n"


def test_many_jobs_at_once_keep_their_own_outcomes(tmp_path: Path) -> None:
    def one(number: int) -> tuple[int | None, str]:
        scratch = tmp_path / str(number)
        scratch.mkdir()
        outcome = run(python(scratch, f"print({number}); raise SystemExit({number})"))
        return outcome.exit_code, outcome.stdout

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(16))) == [(number, f"{number}\n") for number in range(16)]


def test_a_passed_descriptor_keeps_its_number_and_closes_with_the_job(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    number = theirs.fileno()
    code = f"import socket; s = socket.socket(fileno={number}); s.sendall(s.recv(9).upper())"
    with start(python(tmp_path, code, pass_fds=(number,))):
        theirs.close()
        ours.settimeout(20)
        ours.sendall(b"hello")
        assert ours.recv(9) == b"HELLO"
        assert ours.recv(9) == b""  # nobody else holds the other end


def test_the_environment_is_clean_and_what_the_caller_adds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOT_FOR_JOBS", "secret")
    outcome = run(python(tmp_path, "import os; print(sorted(os.environ.items()))", env={"GIVEN": "a b=c"}))
    assert "('GIVEN', 'a b=c')" in outcome.stdout and "NOT_FOR_JOBS" not in outcome.stdout
    for name in ("HOME", "TMPDIR"):
        assert f"('{name}', '{tmp_path}')" in outcome.stdout


def test_the_scratch_directory_is_the_same_inside_and_outside(tmp_path: Path) -> None:
    (tmp_path / "given").write_text("in")
    code = "import os; open('made', 'w').write(open('given').read() + os.getcwd())"
    assert run(python(tmp_path, code)).state == "ok"
    assert (tmp_path / "made").read_text() == f"in{tmp_path}"
    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_read_only_paths_cannot_be_written(tmp_path: Path) -> None:
    given, scratch = tmp_path / "given", tmp_path / "scratch"
    scratch.mkdir()
    given.mkdir()
    (given / "file").write_text("x")
    given.chmod(0o777)
    code = f"print(open('{given}/file').read()); open('{given}/new', 'w')"
    job = Job((sys.executable, "-I", "-c", code), scratch, (*python_paths(), given))
    outcome = run(job)
    assert outcome.stdout == "x\n" and outcome.state == "error" and not (given / "new").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's jobs run as another user")
@pytest.mark.parametrize("is_file", [False, True])
def test_a_path_closed_to_roots_jobs_is_named_before_one_starts(tmp_path: Path, is_file: bool) -> None:
    given, scratch = tmp_path / "given", tmp_path / "scratch"
    scratch.mkdir()
    given.touch() if is_file else given.mkdir()
    job = Job(("/usr/bin/test", "-r", str(given)), scratch, read_only=(given,))
    given.chmod(0o600 if is_file else 0o711)
    with pytest.raises(SandboxError, match=f"may not read {given}. Run `chmod -R o.rX {given}`"):
        run(job)
    given.chmod(0o644 if is_file else 0o755)
    assert run(job).state == "ok"


def test_a_command_that_is_not_there_is_an_error_of_the_job(tmp_path: Path) -> None:
    outcome = run(Job(("/usr/bin/no-such-program",), tmp_path))
    assert (outcome.state, outcome.exit_code) == ("error", 127)


@pytest.mark.parametrize("code", [1, 128, 193, 255])
def test_an_exit_code_that_no_signal_has_is_the_jobs_own(tmp_path: Path, code: int) -> None:
    """nvcc exits with 255 when ptxas refuses a kernel, and ninja passes that on."""
    outcome = run(python(tmp_path, f"import os; os._exit({code})"))
    assert (outcome.state, outcome.exit_code, outcome.signal) == ("error", code, None)


def test_modules_in_the_working_directory_are_not_imported(tmp_path: Path) -> None:
    for name in ("sitecustomize", "usercustomize", "numpy", "json"):
        (tmp_path / f"{name}.py").write_text("print('imported')")
    outcome = run(python(tmp_path, "import json; json.dumps(1)"))
    assert (outcome.state, outcome.stdout) == ("ok", "")


@pytest.mark.parametrize(
    "job",
    [
        Job((), Path("/")),
        Job(("a=b",), Path("/tmp")),
        Job(("true",), Path("relative")),
        Job(("true",), Path("/no/such/directory")),
        Job(("true",), Path("/tmp"), read_only=(Path("/no/such/path"),)),
        Job(("true",), Path("/tmp"), env={"A=B": "c"}),
    ],
)
def test_a_job_that_makes_no_sense_is_refused(job: Job) -> None:
    with pytest.raises(SandboxError):
        start(job)


@pytest.mark.few(1)
@pytest.mark.parametrize("tier", TIERS)
def test_a_killed_harness_leaves_nothing(tier: str, open_driver: Callable[[str], Driver]) -> None:
    driver = open_driver(tier)
    mark = driver.ask("deaf_double_fork", detach=True, wall_s=1000)["mark"]
    until(lambda: len(marked(mark)) >= 2)
    driver.process.send_signal(signal.SIGKILL)
    driver.process.wait()
    until(lambda: not marked(mark))


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"a\x1b[1;31mb\x1b[0m", "ab"),
        (b"a\x1b]0;title\x07b\x1b]8;;u\x1b\\c", "abc"),
        (b"a\r\nb\rc\x00\x08\td\n", "a\nbc\td\n"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        ("a\u202eb\u2066c\x9b31m".encode(), "abc31m"),
        (b"end \x1b]0;never closed", "end "),
        (b"end \x1b[", "end "),
    ],
)
def test_shown_text_holds_no_controls(raw: bytes, text: str) -> None:
    assert plain_text(raw) == text


def test_output_is_bounded_but_the_job_goes_on(tmp_path: Path) -> None:
    outcome = run(python(tmp_path, "print('x' * 5000)", limits=Limits(output_bytes=1000)))
    assert (outcome.state, len(outcome.stdout)) == ("ok", 1000)
