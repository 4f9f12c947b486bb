"""A database that cannot be used says what is wrong with it and what to do: one error, no traceback."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernelproof.db.store import Store, open_store
from kernelproof.errors import StoreError, UsageError
from tests.db import samples

FILL = """
import sys
from pathlib import Path
from kernelproof.db.store import open_store
from kernelproof.errors import StoreError
from tests.db import samples
try:
    with open_store(Path(sys.argv[1])) as store:
        for number in range(1000):
            store.add_problem(samples.problem(number, source=f"# {number}" + "x" * 20_000))
except StoreError as error:
    sys.exit(f"STOPPED {error}")
"""


def fill(*prefix: str, path: Path, limit: int | None = None) -> str:
    """What a process says that stores 20 MB at `path`, started through `prefix`."""

    def limited() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    command = [*prefix, sys.executable, "-c", FILL, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limited, check=False)
    return done.stderr


def test_a_missing_database_tells_readers_to_generate_first(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="kernelproof generate"):
        open_store(tmp_path / "attempts.sqlite", create=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [("text", "not a SQLite database"), (".", "is a directory"), ("text/attempts.sqlite", "cannot be used")],
)
def test_what_is_no_database(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "text").write_text("these are not the bytes you are looking for\n" * 100)
    with pytest.raises(StoreError, match=why):
        open_store(tmp_path / name)


def test_a_damaged_database_is_found_when_it_is_read(store: Store) -> None:
    for sample in range(30):
        samples.judge(store, samples.problem(), samples.settings(), sample=sample)
    store.close()
    content = bytearray(store.path.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    store.path.write_bytes(content)
    with pytest.raises(StoreError, match=r"is damaged.*backup"), open_store(store.path) as damaged:
        damaged.load_attempt(1)


def test_a_full_disk_stops_with_advice_and_keeps_what_was_stored(tmp_path: Path) -> None:
    mount = f'mount -t tmpfs -o size=2m none {tmp_path} && exec "$@"'
    prefix = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh")
    if shutil.which("unshare") is None or subprocess.run([*prefix, "true"], capture_output=True).returncode:
        pytest.skip("this machine lets us mount no small disk (user namespaces are off)")
    said = fill(*prefix, path=tmp_path / "attempts.sqlite")
    assert said.startswith("STOPPED database")
    assert "disk is full" in said


def test_a_file_size_limit_stops_with_advice_and_keeps_what_was_stored(tmp_path: Path) -> None:
    path = tmp_path / "attempts.sqlite"
    said = fill(path=path, limit=2 << 20)
    assert said.startswith("STOPPED database")
    assert "run the same command again" in said
    with open_store(path) as store:
        store.add_problem(samples.problem())


@pytest.mark.parametrize("existing", [False, True])
def test_a_read_only_directory(tmp_path: Path, existing: bool) -> None:
    folder = tmp_path / "db"
    folder.mkdir()
    if existing:
        open_store(folder / "attempts.sqlite").close()
        (folder / "attempts.sqlite").chmod(0o444)
    folder.chmod(0o555)
    prefix: tuple[str, ...] = ()
    if os.geteuid() == 0:  # root writes everywhere, unless that privilege is given up
        prefix = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
        if shutil.which("setpriv") is None:
            pytest.skip("running as root, and there is no setpriv to give up its privileges")
    said = fill(*prefix, path=folder / "attempts.sqlite")
    folder.chmod(0o755)
    assert said.startswith("STOPPED database")
    assert "writ" in said
