"""Which places are measured, and what the table makes of them."""

from __future__ import annotations

from benchmarks.scaling import Place, places_of, shown


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


def test_rates_are_told_as_multiples_of_the_first() -> None:
    overlap = {"device": 0.5, "cores": 0.25, "neither": 0.25, "neither_by": {}, "busy": 0.9}
    common = {"count": 10, "gpus": 0, "first_s": 3.0, "overlap": overlap}
    head, one, two = shown(
        [{**common, "cores": 1, "wall_s": 40.0}, {**common, "cores": 2, "wall_s": 20.0}]
    ).splitlines()
    assert head.split()[:3] == ["cores", "GPUs", "candidates"]
    assert one.split() == ["1", "0", "10", "4.00", "900", "1.00", "3.0", "50%", "25%", "25%"]
    assert two.split()[3:6] == ["2.00", "1800", "2.00"]
