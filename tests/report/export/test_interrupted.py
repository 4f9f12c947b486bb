"""An export that is interrupted or ended leaves nothing behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli import prestarted

WRITER = """
import sys, threading
from pathlib import Path
from kernelproof.report.export import files

with getattr(files, sys.argv[1])(Path(sys.argv[2])) as partial:
    (partial / "part" if partial.is_dir() else partial).write_text("half")
    print("written", flush=True)
    threading.Event().wait()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("kind", ["new_file", "new_folder"])
def test_nothing_is_left(kind: str, number: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, kind, str(tmp_path / "out")]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=prestarted.interruptible,
    ) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == "written\n"
        assert len(list(tmp_path.iterdir())) == 1
        writer.send_signal(number)
        assert writer.wait(120) != 0
    assert list(tmp_path.iterdir()) == []
