"""Attempts into a bundle. The same attempts give the same bytes."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kernelproof.db.store import Store
from kernelproof.db.views import StoredAttempt, StoredVerification
from kernelproof.errors import UsageError, writing
from kernelproof.runs.bundles.container import (
    FORMAT,
    MANIFEST,
    MOST_ATTEMPTS,
    MOST_BYTES,
    MOST_FILE_BYTES,
    MOST_MEMBER_BYTES,
    PARTS,
    SOURCES,
    VERSION,
    encoded,
    manifest_sha256,
    member,
)
from kernelproof.runs.bundles.signing import sign, signature_of
from kernelproof.types.reproduction import Bundled
from kernelproof.version import POLICY, __version__
from kernelproof.workspace import write_in_one_step

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every member, the earliest that a zip file can say: the moment of writing is no part of it."""


def bundled(store: Store, attempt_id: int, verification_id: int | None = None) -> Bundled:
    """An attempt with one of its verifications; with the one that counts, where none is named.

    Raises UsageError where it was never verified, and where what is stored was altered since.
    """
    stored = store.load_attempt(attempt_id)
    verification = verification_of(stored, verification_id)
    response, extraction = stored.response, stored.extraction
    if stored.alterations or response is None or extraction is None or extraction.candidate is None:
        why = stored.alterations[0] if stored.alterations else "its program is missing"
        raise UsageError(f"attempt {attempt_id} is not what was judged ({why}); it is not bundled")
    return Bundled(
        number=stored.id,
        run=stored.run,
        sample=stored.key.sample,
        turn=stored.key.turn,
        problem=stored.problem,
        prompt=stored.prompt,
        response=response,
        base=shown_program(store, stored),
        extraction=extraction,
        verification=verification.verification,
    )


def verification_of(stored: StoredAttempt, verification_id: int | None = None) -> StoredVerification:
    """The verification of an attempt that counts, or the one that is named.

    Raises UsageError where it was never verified.
    """
    named = [v for v in stored.verifications if v.id == verification_id]
    verification = named[0] if named else stored.verdict
    if verification is None:
        why = f"it ended as {stored.status}" if stored.status else "it is not finished"
        raise UsageError(f"attempt {stored.id} was never verified ({why}); there is nothing to reproduce")
    return verification


def shown_program(store: Store, stored: StoredAttempt) -> str | None:
    """The program that the question of an attempt showed, where its answer is a diff of that; else None."""
    if stored.extraction is None or stored.extraction.method != "diff":
        return None
    parent = stored.parent_id
    while parent is not None:
        above = store.load_attempt(parent)
        if above.source is not None:
            return above.source
        parent = above.parent_id
    return None


def members_of(attempt: Bundled) -> dict[str, bytes]:
    record = attempt.model_dump()
    candidate = attempt.extraction.candidate
    assert candidate is not None
    verification = record["verification"]
    parts: dict[str, Any] = {
        "problem": {**record["problem"], "source": None},
        "prompt": record["prompt"],
        "response": record["response"],
        "extraction": {**record["extraction"], "candidate": None},
        "run": {"settings": record["run"], "sample": attempt.sample, "turn": attempt.turn},
        "verdict": {key: value for key, value in verification.items() if key not in PARTS},
        **{name: verification[name] for name in PARTS},
    }
    texts = (attempt.problem.source, candidate.source, attempt.base)
    sources = dict(zip(SOURCES, texts, strict=True))
    members = {
        member(attempt.number, name): text.encode("utf-8", "surrogatepass")
        for name, text in sources.items()
        if text is not None
    }
    for name, value in parts.items():
        if value is not None:
            members[member(attempt.number, f"{name}.json")] = encoded(value)
    return members


def manifest_of(members: dict[str, bytes]) -> dict[str, Any]:
    """The manifest: each member with its size and hash, and a hash over all of that."""
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "kernelproof": __version__,
        "policy": POLICY,
        "members": {
            name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in sorted(members.items())
        },
    }
    return {**manifest, "sha256": manifest_sha256(manifest)}


def packed(manifest: dict[str, Any], members: dict[str, bytes]) -> bytes:
    """The zip file: the manifest first, then the members by name."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in ((MANIFEST, encoded(manifest)), *sorted(members.items())):
            info = zipfile.ZipInfo(name, EPOCH)
            info.compress_type, info.create_system = zipfile.ZIP_DEFLATED, 3
            info.external_attr = 0o644 << 16
            archive.writestr(info, data)
    return buffer.getvalue()


def write_bundle(attempts: Iterable[Bundled], path: Path, key: Path | None = None) -> tuple[str, int]:
    """Writes a bundle, whole or not at all; its hash and its size in bytes.

    `key`: an SSH key, whose signature is written beside it. Raises UsageError for what no bundle takes and
    for a file that is no key, MachineError where the bundle cannot be signed or written.
    """
    manifest, data = _packed(attempts)
    signature = sign(data, key) if key else None
    _write(path, data)
    if signature is not None:
        _write(signature_of(path), signature)
    return manifest["sha256"], len(data)


def bundle_bytes(store: Store, attempt_id: int, verification_id: int | None = None) -> bytes | None:
    """The bundle of one attempt, with one of its verifications; None where `bundled` or the format refuses
    it."""
    try:
        return _packed([bundled(store, attempt_id, verification_id)])[1]
    except UsageError:
        return None


def _packed(attempts: Iterable[Bundled]) -> tuple[dict[str, Any], bytes]:
    """The manifest and the whole file. Raises UsageError for what no bundle takes."""
    members: dict[str, bytes] = {}
    total = 0
    for count, attempt in enumerate(attempts, 1):
        own = members_of(attempt)
        total += sum(map(len, own.values()))
        longest = max(own, key=lambda name: len(own[name]))
        if len(own[longest]) > MOST_MEMBER_BYTES:
            most = f"{MOST_MEMBER_BYTES >> 20} MiB"
            raise UsageError(f"attempt {attempt.number}: {longest} is larger than a bundle takes ({most})")
        if count > MOST_ATTEMPTS or total > MOST_BYTES:
            raise UsageError(
                f"so much is no bundle ({MOST_ATTEMPTS} attempts and {MOST_BYTES >> 20} MiB at most); "
                "filter for fewer"
            )
        members |= own
    manifest = manifest_of(members)
    data = packed(manifest, members)
    if len(data) > MOST_FILE_BYTES:
        raise UsageError(
            f"the bundle would be larger than {MOST_FILE_BYTES >> 20} MiB; filter for fewer attempts"
        )
    return manifest, data


def _write(path: Path, data: bytes) -> None:
    with writing(path):
        if path.exists() and not path.is_file():
            raise UsageError(f"{path} is no file; give a file's name with -o")
        write_in_one_step(path, data)
