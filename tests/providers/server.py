"""A Chat Completions server on loopback that plays a script: one step for each request."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests.loopback import Quiet, serving


@dataclass
class Step:
    """What the server does with one request."""

    body: Any = None
    """A JSON value, or text that is sent as it is."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    close: bool = False
    """Close the connection instead of answering."""
    drip_s: float = 0.0
    """Send a blank every few milliseconds for at most so long, and never the body."""


@dataclass
class Server:
    """The running server and what it was asked."""

    url: str
    requests: list[dict[str, Any]]
    authorizations: list[str | None]
    keys: list[str | None]
    """The `Idempotency-Key` of each request."""
    listed: list[str]
    """A path for each time that the list of models was asked for."""


def completion(content: Any = "hello", **changes: Any) -> dict[str, Any]:
    """A `chat.completion` body; `changes` replace its fields, None removes one."""
    message = {"role": "assistant", "content": content, **changes.pop("message", {})}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "served-model",
        "system_fingerprint": "fp_1",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }
    return {key: value for key, value in (body | changes).items() if value is not None}


def failure(status: int, **error: Any) -> Step:
    """An error as servers send it, asking the client not to wait before its retry."""
    return Step({"error": {"message": "it failed", **error}}, status, {"retry-after-ms": "1"})


@contextmanager
def serve(*steps: Step, models: Step | None = None) -> Iterator[Server]:
    """A server that plays `steps` in order and repeats the last. `models` is its list of models, if any."""
    requests: list[dict[str, Any]] = []
    authorizations: list[str | None] = []
    keys: list[str | None] = []
    listed: list[str] = []

    class Handler(Quiet):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            listed.append(self.path)
            self._play(models or Step({"detail": "Not Found"}, 404))

        def do_POST(self) -> None:
            assert self.path == "/v1/chat/completions"
            step = steps[min(len(requests), len(steps) - 1)]
            requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            authorizations.append(self.headers["authorization"])
            keys.append(self.headers["idempotency-key"])
            self._play(step)

        def _play(self, step: Step) -> None:
            if step.close:
                self.close_connection = True
                return
            if step.drip_s:
                self._drip(step.drip_s)
                return
            data = (step.body if isinstance(step.body, str) else json.dumps(step.body)).encode()
            self.send_response(step.status)
            for name, value in {"content-type": "application/json", **step.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _drip(self, seconds: float) -> None:
            self.close_connection = True
            self.send_response(200)
            self.send_header("content-length", "1000000")
            self.end_headers()
            end = time.monotonic() + seconds
            with suppress(OSError):  # the client hangs up
                while time.monotonic() < end:
                    self.wfile.write(b" ")
                    time.sleep(0.02)

    with serving(Handler) as url:
        yield Server(f"{url}/v1", requests, authorizations, keys, listed)
