"""What is right: the truth in float64, how far outputs are off, and how far they may be. Begin with
`tolerance`, the one derivation of what is allowed, and `oracle`, which applies it; `comparing` measures,
and `indices`, `rounding` and `plain_arithmetic` each widen the tolerance for one honest reason.
"""
