"""Whether this process runs in a container, and which of the container's options weaken the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kernelproof.verifier.sandbox.model import Tier

_CAP_SYS_ADMIN = 1 << 21
_MARKS = {
    ".dockerenv": "Docker",
    "run/.containerenv": "Podman",
    "var/run/secrets/kubernetes.io": "Kubernetes",
}
_NAMES = {"podman": "Podman", "docker": "Docker", "lxc": "LXC"}
"""Values of the variable `container`, and the engines that write them."""
_FILTERING = "2"
"""`Seccomp` in /proc/PID/status where a filter is loaded."""


@dataclass(frozen=True)
class Container:
    """The container around this process, as its files tell."""

    engine: str
    """`Docker`, `Podman`, `Kubernetes`; what the variable `container` says; `unknown`."""
    root: bool
    """Whether this process is the container's user 0."""
    admin: bool
    """Whether it has CAP_SYS_ADMIN."""
    filtered: bool
    """Whether the engine's system-call filter is in force."""
    apparmor: str
    """The AppArmor profile that is enforced; empty: none."""
    masked: bool
    """Whether parts of /proc are covered, so that nobody may mount another one."""
    refused_by_host: str
    """The setting of the host that refuses user namespaces to ordinary users; empty: none."""

    def remedies(self, tier: Tier | None, *, bubblewrap: bool) -> list[str]:
        """Options that would give a stronger tier than `tier` (None: none works), one after the other."""
        if tier is Tier.A or (tier is Tier.B and not self.root):
            return []
        return list(self._remedies(bubblewrap))

    def _remedies(self, bubblewrap: bool) -> Iterator[str]:
        if not bubblewrap:
            yield "install bubblewrap in the image"
        if self.root and not self.admin:
            yield "run as an ordinary user (--user 10001), or as root with --cap-add SYS_ADMIN"
        if self.filtered:
            yield "--security-opt seccomp=unconfined"
        if self.apparmor:
            yield "--security-opt apparmor=unconfined"
        if self.masked:
            podman = self.engine == "Podman"
            yield "--security-opt unmask=ALL" if podman else "--security-opt systempaths=unconfined"
        if self.refused_by_host and not self.root:
            yield f"on the host: sysctl -w {self.refused_by_host}"


def container(top: Path = Path("/")) -> Container | None:
    """The container that this process runs in; None outside of one. `top`: the directory taken for `/`."""
    engine = _engine(top)
    if engine is None:
        return None
    status = _fields(top / "proc/self/status")
    return Container(
        engine=engine,
        root=status.get("Uid", "").split()[1:2] == ["0"],
        admin=bool(int(status.get("CapEff", "0"), 16) & _CAP_SYS_ADMIN),
        filtered=status.get("Seccomp") == _FILTERING,
        apparmor=_profile(_text(top / "proc/self/attr/current")),
        masked=_masked(_text(top / "proc/self/mountinfo")),
        refused_by_host=_refusal(top / "proc/sys"),
    )


def _engine(top: Path) -> str | None:
    for mark, name in _MARKS.items():
        if (top / mark).exists():
            return name
    pairs = (pair.partition("=") for pair in _text(top / "proc/self/environ").split("\0"))
    variables = {name: value for name, _, value in pairs}
    if "KUBERNETES_SERVICE_HOST" in variables:
        return "Kubernetes"
    named = variables.get("container")
    return None if named is None else _NAMES.get(named, named or "unknown")


def _masked(mounts: str) -> bool:
    return any(_place(line).startswith("/proc/") for line in mounts.splitlines())


def _place(line: str) -> str:
    fields = line.split()
    return fields[4] if len(fields) > 4 else ""


def _profile(text: str) -> str:
    """`docker-default (enforce)` is in force; `unconfined` and profiles that only complain are not."""
    name, _, mode = text.strip("\0\n ").rpartition(" ")
    return name if mode == "(enforce)" else ""


def _refusal(settings: Path) -> str:
    if _text(settings / "user/max_user_namespaces").strip() == "0":
        return "user.max_user_namespaces=15000"
    if _text(settings / "kernel/unprivileged_userns_clone").strip() == "0":
        return "kernel.unprivileged_userns_clone=1"
    if _text(settings / "kernel/apparmor_restrict_unprivileged_userns").strip() == "1":
        return "kernel.apparmor_restrict_unprivileged_userns=0"
    return ""


def _fields(path: Path) -> dict[str, str]:
    pairs = (line.partition(":") for line in _text(path).splitlines())
    return {name: value.strip() for name, _, value in pairs}


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
