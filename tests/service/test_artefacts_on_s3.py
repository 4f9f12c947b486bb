"""The artefact store on S3: moto's server over HTTP, reached through s3fs.

It is left out where these packages are not installed: pip install 'moto[server]' s3fs.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kernelproof.client import Candidate, Client
from kernelproof.service.artefacts import StoreAway, open_artefacts
from tests.cli import material
from tests.cli.program import Program, kill
from tests.service.conftest import NO_PROGRAM, serving

moto: Any = pytest.importorskip("moto.server", reason="moto[server] is not installed")
boto3: Any = pytest.importorskip("boto3", reason="moto[server] is not installed")
s3fs: Any = pytest.importorskip("s3fs", reason="s3fs is not installed")

BUCKET = "builds"
LARGE = 120 << 20
"""Bytes that s3fs sends in parts."""
DATA = b"a library" * 1000
KEY = "ab" * 32


class Server:
    """An S3 server on this machine. Its objects survive its stops."""

    def __init__(self) -> None:
        self._running: Any = None
        self.port = 0

    def start(self) -> None:
        self._running = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=self.port, verbose=False)
        self._running.start()
        _, self.port = self._running.get_host_and_port()

    def stop(self) -> None:
        self._running.stop()

    @property
    def environment(self) -> dict[str, str]:
        """The variables that tell s3fs where the server is."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
        }


@pytest.fixture(scope="module")
def s3() -> Iterator[Server]:
    server = Server()
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem().mkdir(BUCKET)
        yield server
    server.stop()
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def folder(s3: Server) -> str:
    return f"{BUCKET}/{uuid.uuid4().hex}"


def test_what_is_put_is_listed_read_and_pruned(folder: str) -> None:
    store = open_artefacts(f"s3://{folder}")
    assert store.entries() == [] and store.get(KEY) is None
    store.put(KEY, DATA)
    store.put(KEY, DATA)
    assert open_artefacts(f"s3://{folder}").get(KEY) == DATA
    open_artefacts(f"s3://{folder}/below").put(KEY, b"of others")
    [entry] = store.entries()
    assert abs(entry.written - time.time()) < 600 and entry.bytes > len(DATA)
    assert store.prune(unused_s=0).builds == 0, "it was written of late"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kernelproof.service.artefacts.RECENT_S", -600.0)
        assert store.prune(unused_s=-600).builds == 1
    assert store.entries() == [] and store.get(KEY) is None


def test_a_large_library_is_put_and_got(folder: str) -> None:
    store = open_artefacts(f"s3://{folder}")
    store.put(KEY, bytes(LARGE))
    assert store.get(KEY) == bytes(LARGE)


def test_several_publishers_of_the_same_at_once(folder: str) -> None:
    stores = [open_artefacts(f"s3://{folder}") for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda store: store.put(KEY, DATA), stores))
    assert len(stores[0].entries()) == 1 and stores[0].get(KEY) == DATA


def test_a_mistyped_bucket_is_told_and_not_made(s3: Server) -> None:
    store = open_artefacts("s3://biulds/folder")
    for use in (lambda: store.put(KEY, DATA), lambda: store.get(KEY), store.entries):
        with pytest.raises(StoreAway, match=r"bucket"):
            use()
    assert not s3fs.S3FileSystem(use_listings_cache=False).exists("biulds")


def test_a_store_that_goes_away_and_comes_back(s3: Server, folder: str) -> None:
    store = open_artefacts(f"s3://{folder}")
    store.put(KEY, DATA)
    s3.stop()
    try:
        with pytest.raises(StoreAway, match="cannot be used"):
            store.get(KEY)
    finally:
        s3.start()
    assert store.get(KEY) == DATA


@pytest.fixture
def reader(s3: Server, folder: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Credentials that may read and list, and neither write nor delete."""
    rights = {"Effect": "Allow", "Action": ["s3:GetObject", "s3:ListBucket"], "Resource": "*"}
    users, name = boto3.client("iam"), uuid.uuid4().hex
    users.create_user(UserName=name)
    policy = json.dumps({"Version": "2012-10-17", "Statement": [rights]})
    users.put_user_policy(UserName=name, PolicyName="reads", PolicyDocument=policy)
    key = users.create_access_key(UserName=name)["AccessKey"]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
    asked = f"{s3.environment['AWS_ENDPOINT_URL']}/moto-api/reset-auth"
    httpx2.post(asked, content="0").raise_for_status()
    s3fs.S3FileSystem.clear_instance_cache()
    yield
    httpx2.post(asked, content="inf").raise_for_status()
    s3fs.S3FileSystem.clear_instance_cache()


def test_a_judge_needs_no_right_to_write(folder: str, request: pytest.FixtureRequest) -> None:
    open_artefacts(f"s3://{folder}").put(KEY, DATA)
    s3fs.S3FileSystem().pipe_file(f"{folder}/cd/{'cd' * 32}", b"damaged")
    request.getfixturevalue("reader")
    store = open_artefacts(f"s3://{folder}")
    assert store.get(KEY) == DATA
    assert store.get("0" * 64) is None and store.get("cd" * 32) is None
    with pytest.raises(StoreAway, match="Access Denied"):
        store.put("0" * 64, b"another")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kernelproof.service.artefacts.RECENT_S", -600.0)
        assert "Access Denied" in store.prune(target=0).trouble


@pytest.mark.ci
def test_builders_and_judges_share_it_while_it_is_away_for_a_while(
    s3: Server, folder: str, program: Program, suite: Path
) -> None:
    program.extra = s3.environment
    texts = [NO_PROGRAM, material.wrong("wrong"), material.uncompilable(), material.right()]
    place = ("--artefacts", f"s3://{folder}")
    s3.stop()
    away = True
    with serving(program, suite, "--no-worker") as service, Client(service.url) as client:
        sent = client.submit([Candidate(text, "relu") for text in texts])
        daemons = [program.start("service", "workers", "--role", role, *place) for role in ("build", "judge")]
        try:
            told = threading.Event()
            assert daemons[0].stderr is not None
            for line in daemons[0].stderr:
                if "goes back into the queue" in line:
                    told.set()
                    break
            assert told.is_set(), "the builder met no store that was away"
            s3.start()
            away = False
            ended = [client.wait(each.id) for each in sent]
        finally:
            for each in daemons:
                kill(each)
            if away:
                s3.start()
    assert [each.status for each in ended] == ["no_code", "wrong_output", "build_error", "correct"]
    removed = program.run("cache", "prune", *place, "--older-than", 0).stdout
    assert removed.startswith("removed 0 builds"), "they were written of late"
    assert "left    0 builds" not in removed
