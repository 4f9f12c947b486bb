"""Files and batches on loopback, as OpenAI documents them: questions in a file, answers in another, later.

A file is refused that is no JSON Lines, repeats a custom id, or asks another endpoint than the batch. Answers
come in another order than the questions; what failed comes in a file of its own. The model's name says what
goes wrong:

- `some-fail`: every third question gets an error of the server (500), the next one of the request (400),
- `expires`: only the first half is answered in time,
- `too-much`: the batch fails, because too much was asked before.
"""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.parser import BytesParser
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.loopback import Quiet, serving

PROMPT_TOKENS, COMPLETION_TOKENS = 100, 50


@dataclass
class BatchServer:
    """The running server, and what came to it."""

    url: str = ""
    text: str = "no code today"
    """Every answer."""
    seconds: float = 0.0
    """So long a batch takes."""
    loses: list[str] = field(default_factory=list)
    """Replies that do not come though the work is done, each once: `POST /v1/batches`."""
    down: bool = False
    """Answers every request with 503."""
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    """How often each custom id came in a batch."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    """The requests inside the batches."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def finish(self, batch: dict[str, Any]) -> None:
        """Makes the files of a batch whose time is over."""
        if batch["status"] != "in_progress" or time.time() < batch["due"]:
            return
        answers, errors = [], []
        for number, line in enumerate(batch["lines"]):
            result = self._result(line, number, batch)
            (
                answers if result["error"] is None and result["response"]["status_code"] == 200 else errors
            ).append(result)
        generator = random.Random(len(answers))
        for name, entries in (("output_file_id", answers), ("error_file_id", errors)):
            if entries:
                generator.shuffle(entries)
                batch[name] = self.keep("\n".join(map(json.dumps, entries)).encode())
        counts = {"total": len(batch["lines"]), "completed": len(answers), "failed": len(errors)}
        batch["request_counts"] = counts
        batch["status"] = "expired" if batch["model"] == "expires" else "completed"

    def _result(self, line: dict[str, Any], number: int, batch: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {"id": f"batch_req_{number}", "custom_id": line["custom_id"], "error": None}
        status, said = 200, ""
        if batch["model"] == "some-fail" and number % 3:
            status, said = ((), (500, "it broke"), (400, "this prompt is not to my taste"))[number % 3]
        if batch["model"] == "expires" and number >= len(batch["lines"]) / 2:
            message = "This request could not be executed before the completion window expired."
            return result | {"response": None, "error": {"code": "batch_expired", "message": message}}
        body = {"error": {"message": said}} if said else self._body(line)
        return result | {"response": {"status_code": status, "request_id": f"req_{number}", "body": body}}

    def _body(self, line: dict[str, Any]) -> dict[str, Any]:
        if line["url"] == "/v1/responses":
            item = {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": self.text}],
            }
            usage = {"input_tokens": PROMPT_TOKENS, "output_tokens": COMPLETION_TOKENS}
            return {"id": "r", "object": "response", "status": "completed", "output": [item], "usage": usage}
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": self.text}}
        usage = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": COMPLETION_TOKENS}
        return {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}

    def keep(self, data: bytes) -> str:
        """The id of a new file."""
        number = f"file-{len(self.files)}"
        self.files[number] = data
        return number

    def create(self, told: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """A new batch, or what is wrong with it."""
        data = self.files.get(told.get("input_file_id", ""))
        if data is None or told.get("completion_window") != "24h":
            return 400, _error("no such file, or another window than 24h")
        lines = [json.loads(line) for line in data.decode().splitlines()]
        ids = [line["custom_id"] for line in lines]
        good = all(line["method"] == "POST" and line["url"] == told["endpoint"] for line in lines)
        if len(set(ids)) != len(ids) or not good or len({line["body"]["model"] for line in lines}) != 1:
            return 400, _error("the file's lines are no good")
        self.asked.update(ids)
        self.bodies += [line["body"] for line in lines]
        number = f"batch_{len(self.batches)}"
        batch = {
            "id": number,
            "object": "batch",
            "status": "in_progress",
            "metadata": told.get("metadata"),
            "created_at": int(time.time()),
            "request_counts": {"total": len(lines), "completed": 0, "failed": 0},
            "lines": lines,
            "model": lines[0]["body"]["model"],
            "due": time.time() + self.seconds,
        }
        if batch["model"] == "too-much":
            message = "Enqueued token limit reached"
            data_ = [{"code": "token_limit_exceeded", "message": message, "line": None}]
            batch |= {"status": "failed", "errors": {"object": "list", "data": data_}}
        self.batches[number] = batch
        return 200, _shown(batch)


def _shown(batch: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in batch.items() if name not in ("lines", "model", "due")}


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error"}}


@contextmanager
def serve(**told: Any) -> Iterator[BatchServer]:
    """A server until the block ends."""
    state = BatchServer(**told)

    class Handler(Quiet):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._serve(b"")

        def do_POST(self) -> None:
            self._serve(self.rfile.read(int(self.headers["content-length"])))

        def _serve(self, data: bytes) -> None:
            place = urlsplit(self.path)
            with state.lock:
                state.requests.append(f"{self.command} {place.path}")
                status, found = (
                    (503, _error("down")) if state.down else self._found(place.path, place.query, data)
                )
                if state.requests[-1] in state.loses:
                    state.loses.remove(state.requests[-1])
                    self.close_connection = True
                    return
            body = found if isinstance(found, bytes) else json.dumps(found).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            kind = "application/octet-stream" if isinstance(found, bytes) else "application/json"
            self.send_header("content-type", kind)
            self.end_headers()
            self.wfile.write(body)

        def _found(self, path: str, query: str, data: bytes) -> tuple[int, Any]:
            if path == "/v1/files" and self.command == "POST":
                return self._upload(data)
            if path == "/v1/batches" and self.command == "POST":
                return state.create(json.loads(data))
            if path == "/v1/batches":
                asked = {name: values[0] for name, values in parse_qs(query).items()}
                newest = [_shown(batch) for batch in reversed(state.batches.values())]
                ids = [batch["id"] for batch in newest]
                first = ids.index(asked["after"]) + 1 if "after" in asked else 0
                return 200, {"object": "list", "data": newest[first : first + int(asked.get("limit", 20))]}
            if named := re.fullmatch(r"/v1/batches/(\w+)", path):
                batch = state.batches.get(named[1])
                if batch is not None:
                    state.finish(batch)
                    return 200, _shown(batch)
            if named := re.fullmatch(r"/v1/files/([\w-]+)/content", path):
                content = state.files.get(named[1])
                if content is not None:
                    return 200, content
            return 404, _error(f"no {path} here")

        def _upload(self, data: bytes) -> tuple[int, Any]:
            head = f"content-type: {self.headers['content-type']}\r\n\r\n".encode()
            parts = BytesParser().parsebytes(head + data).get_payload()
            assert isinstance(parts, list)
            fields = {part.get_param("name", header="content-disposition"): part for part in parts}
            content = fields["file"].get_payload(decode=True)
            if fields["purpose"].get_payload(decode=True) != b"batch":
                return 400, _error("another purpose than batch")
            return 200, {"id": state.keep(content), "object": "file", "bytes": len(content)}

    with serving(Handler) as url:
        state.url = f"{url}/v1"
        yield state
