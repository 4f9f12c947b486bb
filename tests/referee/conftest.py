"""One referee for all tests that need one, and the corpus's confusion table at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.referee.court import Court

settings.register_profile("loaded machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("loaded machine")

TABLE = pytest.StashKey[Counter[tuple[str, str]]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TABLE] = Counter()


@pytest.fixture(scope="session")
def court(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Court]:
    """Judges requests in one referee process; everything it starts has its files below one directory."""
    with pytest.MonkeyPatch.context() as patch:
        scratch = tmp_path_factory.mktemp("scratch")
        scratch.chmod(0o755)
        patch.setenv("TMPDIR", str(scratch))
        with Court(tmp_path_factory.mktemp("cache"), scratch) as court:
            yield court


@pytest.fixture(scope="session")
def confusion(request: pytest.FixtureRequest) -> Counter[tuple[str, str]]:
    """How often a candidate of a kind got a status."""
    return request.config.stash[TABLE]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    table = config.stash[TABLE]
    if not table:
        return
    kinds = sorted({kind for kind, _ in table})
    statuses = sorted({status for _, status in table})
    terminalreporter.section("corpus: kind of candidate against status")
    terminalreporter.line(f"{'':16}" + "".join(f"{kind:>8}" for kind in kinds))
    for status in statuses:
        terminalreporter.line(f"{status:16}" + "".join(f"{table[kind, status] or '.':>8}" for kind in kinds))
