"""How long it takes. Begin with `measuring`, which measures pairs of processes. `rounds` has both sides take
turns, `clock` compares two clocks, and `stopping` says when there are rounds enough. `claim` then says which
speedup may be claimed, and `pace` whether that is faster, slower, the same or unresolved.
"""
