"""The trusted process: loads the problem, draws inputs, computes the truth, compares, keeps the clock.

Begin with `plan`: the stages of a verification in their order, with the checks that each asks. `stages` does
them, on the `session` that they share, and `verdict` says how they ended: a stage reports a check that
failed, `status_rules` gives it its status, and the `ledger` keeps the evidence. Then: `inputs` (what is
drawn), `correctness` (how far off is wrong), `checks` (before the timing), `provenance` (whose kernels ran),
`timing` (rounds, clocks, the pace) with `roofline`, and `sides` (the two processes that are compared). How to
add a check is in CONTRIBUTING.md.
"""
