"""What runs inside the sandbox beside the candidate: standard library and torch only.

The wire format, the shared-memory views and the call loop live here because both sides use them: the
referee runs the reference through the same loop, so that both sides pay the same overhead.
"""
