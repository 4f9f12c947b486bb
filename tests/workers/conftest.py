"""A referee for the tests of workers that need one."""

from __future__ import annotations

from tests.referee.conftest import court as court
