"""The trusted process: loads the problem, draws inputs, computes the truth, compares, keeps the clock.

Begin with `plan`: the stages of a verification in their order, with the checks that each asks. `stages` does
them, on the `session` that they share, and `judge` turns how they ended into the verdict; a status is chosen
where a check fails, and kept in the `ledger`. Then: `inputs` (what is drawn), `correctness` (how far off is
wrong), `checks` (before the timing), `provenance` (whose kernels ran), `timing` (rounds, clocks, the verdict
on them) with `roofline`, and `sides` (the two processes that are compared). To add a check: a `CheckKind` in
`kernelproof.verifier.status_rules`, which says its status, a call of `ledger.passed` or `ledger.failed` in a
stage, and its name in the plan.
"""
