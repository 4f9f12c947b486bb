"""Container: what its files tell, and the options that would give a stronger sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelproof.verifier.sandbox import Tier
from kernelproof.verifier.sandbox.probe import container

STATUS = (
    "Name:\tpython\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nCapEff:\t{capabilities:016x}\nSeccomp:\t{seccomp}\n"
)
PLAIN = "30 20 0:5 / / rw,relatime - ext4 /dev/vda rw\n31 30 0:6 / /proc rw - proc proc rw\n"
MASKED = PLAIN + "32 31 0:7 / /proc/kcore rw - tmpfs tmpfs rw\n"
SECCOMP, APPARMOR = "--security-opt seccomp=unconfined", "--security-opt apparmor=unconfined"
PATHS = "--security-opt systempaths=unconfined"


def machine(top: Path, *, uid: int = 10001, capabilities: int = 0, seccomp: int = 0, **files: str) -> Path:
    """A root directory with these files; `_` in a name stands for `/`, `__` for `_`."""
    written = {
        "proc/self/status": STATUS.format(uid=uid, capabilities=capabilities, seccomp=seccomp),
        "proc/self/mountinfo": PLAIN,
        **{
            name.replace("__", "\0").replace("_", "/").replace("\0", "_"): text
            for name, text in files.items()
        },
    }
    for name, text in written.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    return top


def test_outside_of_a_container_there_is_none(tmp_path: Path) -> None:
    assert container(machine(tmp_path, seccomp=2)) is None


def test_dockers_defaults_and_the_options_that_lift_them(tmp_path: Path) -> None:
    top = machine(
        tmp_path, seccomp=2, proc_self_attr_current="docker-default (enforce)\n", proc_self_mountinfo=MASKED
    )
    (top / ".dockerenv").touch()
    found = container(top)
    assert found is not None and (found.engine, found.root, found.admin) == ("Docker", False, False)
    assert found.remedies(Tier.C2, bubblewrap=True) == [SECCOMP, APPARMOR, PATHS]
    assert found.remedies(None, bubblewrap=False) == [
        "install bubblewrap in the image",
        SECCOMP,
        APPARMOR,
        PATHS,
    ]
    assert found.remedies(Tier.B, bubblewrap=True) == []


@pytest.mark.parametrize(
    ("seccomp", "mounts", "profile", "left"),
    [
        (0, MASKED, "docker-default (enforce)\n", [APPARMOR, PATHS]),
        (0, MASKED, "unconfined\n", [PATHS]),
        (0, PLAIN, "docker-default (complain)\n", []),
    ],
)
def test_what_was_lifted_is_not_asked_for_again(
    tmp_path: Path, seccomp: int, mounts: str, profile: str, left: list[str]
) -> None:
    files = {"proc_self_mountinfo": mounts, "proc_self_attr_current": profile}
    found = container(machine(tmp_path, seccomp=seccomp, proc_self_environ="container=docker\0", **files))
    assert found is not None and found.remedies(Tier.C2, bubblewrap=True) == left


@pytest.mark.parametrize(
    ("environment", "engine"),
    [
        ("container=podman\0", "Podman"),
        ("PATH=/bin\0container=systemd-nspawn\0", "systemd-nspawn"),
        ("KUBERNETES_SERVICE_HOST=10.0.0.1\0", "Kubernetes"),
        ("container=\0", "unknown"),
    ],
)
def test_engines_that_name_themselves(tmp_path: Path, environment: str, engine: str) -> None:
    found = container(machine(tmp_path, proc_self_environ=environment))
    assert found is not None and found.engine == engine


def test_podman_has_another_word_for_it(tmp_path: Path) -> None:
    found = container(machine(tmp_path, proc_self_environ="container=podman", proc_self_mountinfo=MASKED))
    assert found is not None
    assert found.remedies(Tier.C2, bubblewrap=True) == ["--security-opt unmask=ALL"]


def test_a_root_without_the_capability_is_told_of_both_ways(tmp_path: Path) -> None:
    top = machine(tmp_path, uid=0, proc_self_environ="container=docker\0")
    found = container(top)
    assert found is not None and found.root and not found.admin
    (both,) = found.remedies(Tier.C1, bubblewrap=True)
    assert "--user 10001" in both and "--cap-add SYS_ADMIN" in both
    able = container(machine(top, uid=0, capabilities=1 << 21))
    assert able is not None and able.admin and able.remedies(Tier.A, bubblewrap=True) == []


@pytest.mark.parametrize(
    ("name", "text", "setting"),
    [
        ("proc_sys_user_max__user__namespaces", "0\n", "user.max_user_namespaces=15000"),
        ("proc_sys_kernel_unprivileged__userns__clone", "0\n", "kernel.unprivileged_userns_clone=1"),
        (
            "proc_sys_kernel_apparmor__restrict__unprivileged__userns",
            "1\n",
            "kernel.apparmor_restrict_unprivileged_userns=0",
        ),
    ],
)
def test_what_the_host_refuses_is_changed_on_the_host(
    tmp_path: Path, name: str, text: str, setting: str
) -> None:
    found = container(machine(tmp_path, proc_self_environ="container=docker\0", **{name: text}))
    assert found is not None
    assert found.remedies(Tier.C2, bubblewrap=True) == [f"on the host: sysctl -w {setting}"]
