"""GPUs that are not there: `pynvml` is replaced at its boundary, in this process or in others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "nvml"
STATE = "NVIDIA_FAKE_STATE"
UUIDS = tuple(f"GPU-{letter * 8}-1111-2222-3333-444444444444" for letter in "abc")


class FakeGpus:
    """The state of GPUs, as processes see it that were started with `environment`."""

    def __init__(self, file: Path, *uuids: str) -> None:
        self.file = file
        self._gpus: dict[str, dict[str, Any]] = {uuid: {"uuid": uuid} for uuid in uuids}
        self._write()

    def set(self, uuid: str, **facts: Any) -> None:
        """Changes what the driver says of a GPU."""
        self._gpus[uuid] |= facts
        self._write()

    def environment(self, visible: str | None = None) -> dict[str, str]:
        """The environment of a process that sees these GPUs, or the one that is `visible`."""
        chosen = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
        return {"PYTHONPATH": f"{FOLDER}:{ROOT / 'src'}", STATE: str(self.file), **chosen}

    def _write(self) -> None:
        partial = self.file.with_suffix(".partial")
        partial.write_text(json.dumps(list(self._gpus.values())))
        partial.replace(self.file)
