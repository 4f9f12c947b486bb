"""The artefact store on S3: moto's server over HTTP, reached through s3fs.

It is left out where these packages are not installed: pip install 'moto[server]' s3fs.
"""

from __future__ import annotations

import hashlib
import json
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kernelproof.client import Candidate, Client
from kernelproof.service.artefact_places import open_artefacts
from kernelproof.service.artefact_store import ArtefactLost, StoreAway
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
HASH = hashlib.sha256(DATA).hexdigest()
MOST = 1 << 20


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


def test_what_is_put_is_listed_read_and_removed(folder: str) -> None:
    store = open_artefacts(f"s3://{folder}")
    assert store.entries() == [] and store.put(DATA) == HASH == store.put(DATA)
    assert open_artefacts(f"s3://{folder}").get(HASH, MOST) == DATA
    open_artefacts(f"s3://{folder}/below").put(b"of others")
    [entry] = store.entries()
    assert (entry.sha256, entry.bytes) == (HASH, len(DATA))
    assert store.remove(entry) and store.entries() == []
    store.remove(entry)
    with pytest.raises(ArtefactLost, match="is not in the store"):
        store.get(HASH, MOST)


@pytest.mark.parametrize("content", [DATA[:-1], DATA[:-1] + b"?", b"", DATA + b"more"])
def test_what_does_not_have_its_hash_is_refused_and_removed(folder: str, content: bytes) -> None:
    store = open_artefacts(f"s3://{folder}")
    s3fs.S3FileSystem().pipe_file(f"{folder}/{HASH[:2]}/{HASH}", content)
    with pytest.raises(ArtefactLost, match="is spoiled"):
        store.get(HASH, MOST)
    assert store.entries() == []


def test_a_large_library_is_put_and_got(folder: str) -> None:
    store = open_artefacts(f"s3://{folder}")
    data = bytes(LARGE)
    assert store.get(store.put(data), LARGE) == data


def test_several_publishers_of_the_same_at_once(folder: str) -> None:
    stores = [open_artefacts(f"s3://{folder}") for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(lambda store: store.put(DATA), stores)) == {HASH}
    [entry] = stores[0].entries()
    assert entry.sha256 == HASH and stores[0].get(HASH, MOST) == DATA


def test_a_mistyped_bucket_is_told_and_not_made(s3: Server) -> None:
    store = open_artefacts("s3://biulds/folder")
    for use in (lambda: store.put(DATA), lambda: store.get(HASH, MOST), store.entries):
        with pytest.raises(StoreAway, match=r"bucket"):
            use()
    assert not s3fs.S3FileSystem(use_listings_cache=False).exists("biulds")


def test_a_store_that_goes_away_and_comes_back(s3: Server, folder: str) -> None:
    store = open_artefacts(f"s3://{folder}")
    store.put(DATA)
    s3.stop()
    try:
        with pytest.raises(StoreAway, match="cannot be used"):
            store.get(HASH, MOST)
    finally:
        s3.start()
    assert store.get(HASH, MOST) == DATA


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
    sha256 = open_artefacts(f"s3://{folder}").put(b"library")
    s3fs.S3FileSystem().pipe_file(f"{folder}/{HASH[:2]}/{HASH}", b"spoiled")
    request.getfixturevalue("reader")
    store = open_artefacts(f"s3://{folder}")
    with pytest.raises(ArtefactLost, match="is not in the store"):
        store.get("0" * 64, MOST)
    assert store.get(sha256, MOST) == b"library"
    with pytest.raises(ArtefactLost, match="is spoiled"):
        store.get(HASH, MOST)
    with pytest.raises(StoreAway, match="Access Denied"):
        store.put(b"another")
    with pytest.raises(StoreAway, match="Access Denied"):
        store.remove(store.entries()[0])


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
        daemons = [program.start("workers", "--role", role, *place) for role in ("build", "judge")]
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
    told_of = json.loads(program.run("artefacts", "info", *place, "--json").stdout)
    assert told_of["all"]["entries"] > 0 and told_of["needed"]["entries"] == 0
    removed = program.run("artefacts", "prune", *place, "--older-than", 0).stdout
    assert removed.startswith("removed 0 entries"), "they were used of late"
