"""What is asked of a candidate before it is timed. Begin with `trials`: new inputs in the same places, each
output compared. `weights` looks at parameters and buffers and tries other weights, `probes` asks what the
problem does not promise.
"""
