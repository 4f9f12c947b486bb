"""The cost of the evaluation service beside its engine: ``python -m benchmarks.service overhead``.

`overhead` compares the service with its engine called directly, `paired` compares candidates an hour,
`queue` fills the queue with a hundred thousand evaluations, `memory` watches the processes. They print
figures, write them as JSON, and assert nothing. `kills` kills daemons, and fails where anything was lost.
"""
