"""How long it takes. Begin with `measuring`, which measures pairs of processes and decides the verdict on
their times. `rounds` has both sides take turns, `clock` compares two clocks, `claim` says which speedup
may be claimed and `stopping` when there are rounds enough.
"""
