"""The kernels of a verification: their registers and shared memory, their occupancy, and the bottleneck."""
