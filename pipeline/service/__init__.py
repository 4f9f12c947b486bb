"""The evaluation service: candidates come over HTTP, workers verify them, the queue is in the database.

Begin with `serving`: `serve` runs the HTTP process and `work` a worker. `app` assembles the routes behind
`middleware`: `evaluations`, `operators`, and the protocols `kernelgym`, `nemo_gym` and `openrlhf`; they share
`state`, and `schemas` has what callers send and get. `worker` leases jobs from `kernelproof.db.queue`, builds
and judges; `artefacts` carries builds between builders and judges. `launchers` starts workers and restarts
them, here and in clusters. None of these processes runs problem or candidate code.
"""
