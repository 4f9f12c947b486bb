"""What runs inside the sandbox beside the candidate: standard library and torch only.

Begin with `main`, the runner, which answers the referee's requests (`wire`) with the candidate's outputs in
shared memory (`arena`, `encoding`). `loop` times calls, `profiling` watches one, and `extensions` passes on
the candidate's builds. In the build stage `stub_runner` runs a candidate with a stub of torch, or `main` runs
it on a fake device. Nothing that this process says is believed.

The wire format, the shared-memory views and the call loop live here because both sides use them: the referee
runs the reference through the same loop, so that both sides pay the same overhead.
"""
