"""The kernels of a verification: their registers and shared memory, their occupancy, and the bottleneck.

Begin with `analyse`. `resources` reads what the compiler said, `occupancy` and `bottleneck` compute, `names`
spells kernels alike.
"""
