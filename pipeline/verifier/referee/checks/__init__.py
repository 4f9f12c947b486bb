"""The questions to a candidate besides its times. Begin with `trials`: new inputs in the same places, each
output compared. `weights` looks at parameters and buffers and tries other weights. `probes` asks what the
problem does not promise, when the candidate was timed.
"""
