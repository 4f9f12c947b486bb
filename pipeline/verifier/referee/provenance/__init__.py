"""Whose kernels ran: reports of the profiler, libraries, origins."""
