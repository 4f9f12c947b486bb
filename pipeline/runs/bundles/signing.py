"""Signatures of bundles by OpenSSH: `x.bundle.sig` beside `x.bundle`, over all bytes of the file.

    ssh-keygen -Y verify -f SIGNERS -I NAME -n kernelproof -s x.bundle.sig < x.bundle

checks one without kernelproof. Keys, agents, hardware, expiry and revocation are left to OpenSSH.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import BinaryIO, NamedTuple

from kernelproof.errors import KernelproofError, MachineError, UsageError
from kernelproof.regular_files import MIB, read_regular

NAMESPACE = "kernelproof"
"""A part of what is signed: a key's signatures of commits or mails are none of a bundle."""


class NotSigned(KernelproofError):
    """A bundle without a signature that its reader accepts."""


class Signers(NamedTuple):
    allowed: Path
    """Lines as `man ssh-keygen` describes them under ALLOWED SIGNERS."""
    revoked: Path | None = None
    """A key revocation list, or public keys one a line."""


def signature_of(bundle: Path) -> Path:
    return bundle.with_name(f"{bundle.name}.sig")


def sign(data: bytes, key: Path) -> bytes:
    """The armored signature of a bundle's bytes.

    `key`: a private key, or the public key of one that an agent holds. OpenSSH asks for a passphrase at the
    terminal, if there is one. Raises UsageError for a file that is no key, MachineError where the key cannot
    be used on this machine.
    """
    if not key.is_file():
        raise UsageError(f"there is no key {key}; make one with ssh-keygen -t ed25519 -f {key}")
    done = _ssh_keygen("-q", "-Y", "sign", "-n", NAMESPACE, "-f", str(key), data=data)
    if done.returncode == 0:
        return done.stdout
    if _ssh_keygen("-l", "-f", str(key)).returncode:
        raise UsageError(f"{key} holds no SSH key; make one with ssh-keygen -t ed25519 -f NAME")
    raise MachineError(
        f"the key {key} cannot be used ({_words(done)}); a key with a passphrase has to be in an agent where "
        f"there is no terminal to ask for it: ssh-add {key}"
    )


def signer_of(bundle: Path, file: BinaryIO, signers: Signers) -> str:
    """The name that `signers.allowed` gives to the key that signed a bundle.

    `file`: the open bundle; its position changes. Raises NotSigned where the signature is missing, does not
    fit or is not accepted, UsageError where a list of `signers` cannot be read.
    """
    signature = signature_of(bundle)
    with tempfile.TemporaryDirectory(prefix="kernelproof-signature-") as name:
        folder = Path(name)  # of copies, since ssh-keygen reads each several times, and a pipe is read once
        for path, copy in ((signers.allowed, "signers"), (signers.revoked, "revoked")):
            if path is not None:
                try:
                    (folder / copy).write_bytes(read_regular(path, MIB))
                except OSError as error:
                    raise UsageError(f"{path} cannot be read: {error.strerror}") from None
        try:
            (folder / "signature").write_bytes(read_regular(signature, MIB))
        except OSError as error:
            raise NotSigned(
                f"{bundle} is not signed: {signature} cannot be read ({error.strerror}); get that file from "
                "the author, or leave --signers out"
            ) from None
        return _accepted(bundle, file, signers, folder)


def _accepted(bundle: Path, file: BinaryIO, signers: Signers, folder: Path) -> str:
    """The name of the key, by the copies in `folder`."""

    def ask(what: str, *words: str) -> subprocess.CompletedProcess[bytes]:
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        return _ssh_keygen("-Y", what, *words, "-s", "signature", data=file, cwd=folder)

    valid = ask("check-novalidate", "-n", NAMESPACE)
    if valid.returncode:
        raise NotSigned(
            f"{signature_of(bundle)} does not sign {bundle} ({_words(valid)}): one of them was changed or "
            "belongs to something else; get both from the author again"
        )
    fingerprint = re.search(r"SHA256:\S+", os.fsdecode(valid.stdout))
    signed = f"{bundle} is signed by the key {fingerprint[0] if fingerprint else ''}"
    last = ask("find-principals", "-f", "signers")
    for principal in os.fsdecode(last.stdout).split("\n")[:-1]:
        words = ("verify", "-n", NAMESPACE, "-f", "signers", "-I", principal)
        if (last := ask(*words)).returncode == 0:
            if signers.revoked is None or ask(*words, "-r", "revoked").returncode == 0:
                return principal
            raise NotSigned(
                f"{signed}, and {signers.revoked} revokes that, or is no list of keys; ask the author for a "
                "signature by another key"
            )
    raise NotSigned(
        f"{signed}, which {signers.allowed} does not accept ({_words(last)}); ask the key's owner before "
        "you change that list"
    )


def _ssh_keygen(
    *words: str, data: bytes | BinaryIO = b"", cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Runs ssh-keygen on `data`. Raises MachineError where there is none."""
    text, file = (data, None) if isinstance(data, bytes) else (None, data)
    try:
        return subprocess.run(
            ["ssh-keygen", *words], input=text, stdin=file, capture_output=True, cwd=cwd, check=False
        )
    except OSError as error:
        raise MachineError(
            f"signatures need ssh-keygen of OpenSSH, which cannot be run here ({error.strerror}); install "
            "openssh-client, or leave --sign and --signers out"
        ) from None


def _words(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = (line.strip(" .") for line in os.fsdecode(done.stderr).splitlines())
    return "; ".join(line for line in lines if line and not line.startswith("@")) or "no reason was given"
