"""The trusted end of a contestant: deadlines hold, ends are told apart, and nothing is left behind."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import kernelproof
from kernelproof.types import Build, BuildRequest, BuildState
from kernelproof.verifier.workers.client import MAX_BUILDS, Contestant, ContestantFailed, ContestantGone

MOST = 60.0
"""Seconds that a machine under load may take to end a contestant; the deadlines below are far shorter."""
SOCKET = """
import os, time
names = ((int(name), f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd"))
links = {fd: os.readlink(path) for fd, path in names if os.path.lexists(path)}
sockets = [fd for fd, link in links.items() if fd > 2 and link.startswith("socket:")]
sock = sockets[0]
"""


def refuse(request: BuildRequest) -> Build:
    """A build service whose builds all fail."""
    return Build(key="0" * 64, state=BuildState.ERROR, name=request.name, log="error: no such thing")


@pytest.fixture
def contestant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Contestant]:
    monkeypatch.setenv("OPENAI_API_KEY", "a-secret")
    tmp_path.chmod(0o755)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with Contestant(refuse, memory_bytes=4 << 30) as made:
        made.wait_ready()
        made.ask({"op": "hello", "device": "cpu", "threads": 1, "flush_bytes": 0}, seconds=MOST)
        yield made
    assert made.outcome is not None
    assert made.outcome.state != "unkillable"
    assert left(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def left(home: Path) -> list[int]:
    """Processes whose home is below `home`."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("HOME", "").startswith(str(home)):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def load(contestant: Contestant, source: str, seconds: float = MOST) -> None:
    contestant.ask({"op": "load", "source": source, "seed": 0}, seconds=seconds)


def gone(contestant: Contestant, source: str, seconds: float = MOST) -> ContestantGone:
    began = time.monotonic()
    with pytest.raises(ContestantGone) as caught:
        load(contestant, source, seconds)
    assert time.monotonic() - began < seconds + MOST
    return caught.value


def test_a_contestant_that_hangs_is_ended_at_its_deadline(contestant: Contestant) -> None:
    assert gone(contestant, "import time\ntime.sleep(10_000)", 1.0).timed_out


@pytest.mark.ci
def test_bytes_that_drip_do_not_stretch_the_deadline(contestant: Contestant) -> None:
    drip = (
        SOCKET
        + """
os.write(sock, (1 << 20).to_bytes(4, "big"))
while True:
    os.write(sock, b"0")
    time.sleep(0.05)
"""
    )
    assert gone(contestant, drip, 2.0).timed_out


@pytest.mark.slow
def test_frames_that_flood_do_not_stretch_the_deadline(contestant: Contestant) -> None:
    flood = (
        SOCKET
        + """
body = b'{"op": "build", "request": {"name": "x"}}'
while True:
    os.write(sock, len(body).to_bytes(4, "big") + body)
    os.read(sock, 1 << 16)
"""
    )
    assert gone(contestant, flood, 3.0).timed_out
    assert len(contestant.builds) <= MAX_BUILDS


def test_a_death_is_told_from_a_timeout(contestant: Contestant) -> None:
    found = gone(contestant, "import os, signal\nos.kill(os.getpid(), signal.SIGBUS)")
    assert not found.timed_out
    assert found.outcome.signal == "SIGBUS"


def test_children_that_outlive_it_are_ended(contestant: Contestant) -> None:
    source = (
        "import os, time\n"
        "for _ in range(5):\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(10_000)\n"
        "os._exit(3)\n"
    )
    assert gone(contestant, source).outcome.exit_code == 3


def test_an_error_is_data_and_the_contestant_lives_on(contestant: Contestant) -> None:
    with pytest.raises(ContestantFailed) as caught:
        load(contestant, "def f():\n    raise KeyError('x')\nf()")
    assert (caught.value.kind, caught.value.type, caught.value.message) == ("exception", "KeyError", "'x'")
    assert "line 2, in f" in caught.value.traceback
    load(contestant, "answer = 42")
    with pytest.raises(ContestantFailed) as caught:
        contestant.ask({"op": "nothing we know"}, seconds=MOST)
    assert caught.value.type == "KeyError"


def test_it_has_no_secret_of_ours_and_no_descriptor_but_its_socket(contestant: Contestant) -> None:
    source = (
        SOCKET
        + """
assert "a-secret" not in str(dict(os.environ)), os.environ
assert len(sockets) == 1, links
assert not [link for fd, link in links.items() if fd > 2 and link.startswith("pipe:")], links
"""
    )
    load(contestant, source)
    with pytest.raises(ContestantFailed, match=r"ModuleNotFoundError|ImportError|PermissionError"):
        load(contestant, "import kernelproof.verifier.referee")


def test_of_our_program_it_sees_its_own_room_alone(contestant: Contestant) -> None:
    """Neither the other rooms nor the link that gives the package its name, where the sandbox hides files."""
    source = """
import os, sys
room = os.path.dirname(sys.modules["kernelproof.verifier.contestant"].__file__)
package = os.path.dirname(room)
assert os.path.realpath(room) == room, room
assert not os.path.exists({link!r}) and os.listdir(package) == ["contestant"], os.listdir(package)
"""
    if contestant.sandbox.tier not in ("A", "B"):
        pytest.skip("only bubblewrap leaves out what a candidate may not see")
    load(contestant, source.format(link=str(Path(kernelproof.__file__).parent / "types")))


def test_builds_it_asks_for_are_served_with_their_errors(contestant: Contestant) -> None:
    ask = "from torch.utils.cpp_extension import load_inline\nload_inline({name!r}, 'int f();')"
    with pytest.raises(ContestantFailed, match="error: no such thing"):
        load(contestant, ask.format(name="mine"))
    assert [build.name for build in contestant.builds] == ["mine"]
    with pytest.raises(ContestantFailed, match="not usable"):
        load(contestant, ask.format(name="../escape"))
    assert len(contestant.builds) == 1


@pytest.mark.few(1)
@pytest.mark.parametrize("losses", [1, 2])
def test_a_library_that_is_gone_when_it_is_opened_is_asked_for_again(
    contestant: Contestant, tmp_path_factory: pytest.TempPathFactory, losses: int
) -> None:
    folder = tmp_path_factory.mktemp("libraries")
    (folder / "2").write_text("no library, but a file that can be opened")
    asked: list[BuildRequest] = []

    def serve(request: BuildRequest) -> Build:
        asked.append(request)
        library = folder / str(len(asked) if losses == 1 else 0)
        return Build(key="0" * 64, state=BuildState.OK, name=request.name, library=str(library))

    contestant.serve_builds_with(serve)
    with pytest.raises(ContestantFailed) as caught:
        load(contestant, "from torch.utils.cpp_extension import load_inline\nload_inline('mine', 'int f();')")
    assert len(asked) == 2
    (build,) = contestant.builds
    if losses == 1:
        assert build.state is BuildState.OK and build.library == str(folder / "2")
    else:
        assert build.state is BuildState.INFRASTRUCTURE and build.library is None
        assert "removed from the cache of builds twice" in caught.value.message


@pytest.mark.ci
def test_closing_twice_gives_the_same_outcome(contestant: Contestant) -> None:
    assert contestant.close() is contestant.close()
    with pytest.raises(ContestantGone):
        load(contestant, "")
