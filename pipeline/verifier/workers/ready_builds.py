"""Serves a candidate's builds while a device is held: those that are in the cache. No compiler runs."""

from __future__ import annotations

import time
from collections.abc import Mapping

from kernelproof.types import Build, BuildRequest, BuildState
from kernelproof.verifier.build import Builder
from kernelproof.verifier.workers.client import NeedsBuild


class ReadyBuilds:
    """Serves builds from the cache. A build that is not there the orchestrator makes, while another candidate
    has the device; then the first candidate comes again."""

    def __init__(
        self, builder: Builder, made: Mapping[str, Build], build_seconds: float, *, hand_back: bool
    ) -> None:
        """`made`: what was built for this candidate, by its content: a failure that no cache keeps, or the
        same under another name. `hand_back`: False after so many times that compilers run here."""
        self._builder, self._made, self._build_seconds = builder, made, build_seconds
        self._hand_back = hand_back
        self.seconds = 0.0
        """Wall seconds for which compilers ran."""

    def build(self, wanted: BuildRequest) -> Build:
        """The build. Raises NeedsBuild."""
        found = self._builder.ready(wanted)
        # A machine without a compiler has what another one built for it.
        if found is not None and found.state is not BuildState.UNAVAILABLE:
            return found
        before = self._made.get(wanted.content_sha256)
        if before is not None and (before.state is not BuildState.OK or self._builder.holds([before.key])):
            return before
        if found is not None:
            return found
        if self._hand_back:
            raise NeedsBuild(wanted)
        began = time.monotonic()
        try:
            return self._builder.build(wanted, seconds=self._build_seconds)
        finally:
            self.seconds += time.monotonic() - began
