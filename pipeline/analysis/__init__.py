"""The kernels of a verification: their registers and shared memory, their occupancy, and the bottleneck.

Begin with `analyse`. `resources` reads what the compiler printed, `bottleneck` computes, `names` spells
kernels alike.
"""
