"""Whose kernels ran. Begin with `kernels`, which decides; `reports` reads what a contestant claims,
`origins` says whose a kernel is, `replaced` what libraries no longer do.
"""
