"""Which places are measured, and what the table makes of them."""

from __future__ import annotations

from benchmarks.scaling import Place, places_of


def test_scaling_goes_to_all_cores_and_then_to_all_gpus() -> None:
    places = places_of([2, 3, 5, 7, 8, 9], ["a", "b", "c"])
    assert [(len(p.cores), p.gpus) for p in places] == [
        (1, ("a",)),
        (2, ("a",)),
        (4, ("a",)),
        (6, ("a",)),
        (6, ("a", "b")),
        (6, ("a", "b", "c")),
    ]
    assert places_of([4], []) == [Place((4,), ())]
    assert [len(place.gpus) for place in places_of([2, 3], ["a", "b"], "gpus")] == [1, 2]
    assert [len(place.cores) for place in places_of([2, 3], ["a", "b"], "cores")] == [1, 2]
