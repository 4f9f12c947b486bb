"""The logs are read by inspect-ai itself: `pip install inspect-ai`, which kernelproof does not need."""

from __future__ import annotations

import pytest

from kernelproof.db.store import Store
from kernelproof.report.plain import whole
from tests.hostile_texts import TEXTS
from tests.report.export.conftest import Exported, exporting

log = pytest.importorskip("inspect_ai.log")


def test_inspect_reads_the_logs(exported: Exported) -> None:
    folder = exported("inspect")
    listed = log.list_eval_logs(str(folder))
    assert len(listed) == 4
    read = {found.eval.metadata["run_id"]: found for found in map(log.read_eval_log, listed)}
    first = read[1]
    assert (first.status, first.eval.model, first.eval.task) == ("success", "vendor:good", "kernelproof")
    assert [(s.id, s.epoch, s.scores["verified"].value) for s in first.samples] == [
        *(("level1/1", 1, "C"), ("level1/1", 2, "I"), ("level1/12", 1, "C"), ("level2/2", 1, "C")),
    ]
    assert first.samples[0].scores["speedup"].value == 2.0
    assert first.samples[0].output.completion.startswith("```python")
    assert first.samples[0].output.usage.input_tokens == 10
    assert first.results.scores[0].metrics["accuracy"].value == 0.75
    assert read[2].samples[0].error.message == "because"
    header = log.read_eval_log(listed[0], header_only=True)
    assert header.samples is None and header.results is not None


def test_inspects_data_frames(exported: Exported) -> None:
    analysis = pytest.importorskip("inspect_ai.analysis")
    folder = str(exported("inspect"))
    assert len(analysis.evals_df(folder)) == 4
    assert len(analysis.samples_df(folder)) == 7


def test_hostile_texts_are_read_back_as_they_were(
    hostile_store: Store, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = exporting(hostile_store, tmp_path_factory.mktemp("hostile"))("inspect")
    listed = log.list_eval_logs(str(folder))
    assert len(listed) == len(TEXTS)
    for found in listed:
        read = log.read_eval_log(found)
        stored = hostile_store.load_attempt(read.samples[0].metadata["attempt_id"])
        assert stored.response is not None
        assert read.samples[0].output.completion == whole(stored.response.text or "")
