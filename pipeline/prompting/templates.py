"""Prompt templates: folders of Jinja2 files with a name and a version, packaged or the user's own."""

from __future__ import annotations

import functools
import os
import pprint
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, TemplateError

from kernelproof.backends import backend
from kernelproof.errors import UsageError
from kernelproof.hashing import sha256_json, sha256_text
from kernelproof.regular_files import read_regular
from kernelproof.workspace import user_path


def fence(text: str, language: str = "") -> str:
    """`text` in a Markdown code fence longer than any run of backticks in it: nothing closes it early."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    body = text if text.endswith("\n") or not text else text + "\n"
    return f"{ticks}{language}\n{body}{ticks}"


def number(value: float) -> str:
    """At most four significant digits: `0.01235`, `1.2e-07`, `nan`."""
    return f"{value:.4g}"


def percent(fraction: float) -> str:
    """A fraction as a percentage; a part is never rounded to nothing or to the whole."""
    if 0 < fraction < 0.0001:
        return "< 0.01 %"
    if 0.9999 < fraction < 1:
        return "> 99.99 %"
    return f"{fraction * 100:.4g} %"


def index(position: Sequence[int]) -> str:
    """A tensor index as Python writes it: `[0, 3]`; `[]` for a scalar."""
    return f"[{', '.join(map(str, position))}]"


def literal(value: Any) -> str:
    """A size preset's value as a Python literal on one line."""
    return pprint.pformat(value, width=10**6, compact=True)


def mib(size: int) -> str:
    """Bytes as whole MiB, without the unit."""
    return str(round(size / 2**20))


def data(size: int) -> str:
    """Bytes with a binary prefix, three significant digits: `64 MiB`, `1.5 KiB`."""
    value, prefixes = float(size), ["bytes", "KiB", "MiB", "GiB"]
    while value >= 1000 and len(prefixes) > 1:
        value, prefixes = value / 1024, prefixes[1:]
    return f"{value:.3g} {prefixes[0]}"


FILTERS: dict[str, Callable[..., str]] = {
    "fence": fence,
    "number": number,
    "percent": percent,
    "index": index,
    "literal": literal,
    "mib": mib,
    "data": data,
}


REQUIRED = ("repair.j2", "system.j2", "template.toml", "user.j2")
FOR_PLANS = ("plan.j2", "plans.j2")
"""Files of a template that can ask for plans, and for programs that carry them out."""
_KEYS = {"name": str, "version": int, "description": str}


@dataclass(frozen=True)
class Template:
    """One template: what its `template.toml` says, and the text of its files."""

    name: str
    """Name with version: `basic-v1`."""
    description: str
    files: Mapping[str, str]
    """File name to text: `template.toml` and every `*.j2` of the folder."""
    where: str

    def sha256(self, backend: str) -> str:
        """Hash over the template's files and the worked example shown for `backend`, by sorted names."""
        parts = dict(self.files) | {f"examples/{k}": v for k, v in example(backend).items()}
        return sha256_json({name: sha256_text(text) for name, text in parts.items()})

    def render(self, file: str, variables: Mapping[str, Any]) -> str:
        """The text of one of the template's files. Raises UsageError naming file and line of a mistake."""
        try:
            return (
                _compiled(frozenset(self.files.items())).get_template(file).render(variables).strip() + "\n"
            )
        except TemplateError as error:
            line = getattr(error, "lineno", None)
            place = f"{getattr(error, 'filename', None) or file}" + (f", line {line}" if line else "")
            raise UsageError(
                f"template {self.where}, {place}: {error}; docs/reference/prompts.md lists the variables"
            ) from error


@functools.lru_cache(maxsize=16)
def _compiled(files: frozenset[tuple[str, str]]) -> Environment:
    """Compiles each of these files once: that takes longer than a hundred renderings."""
    environment = Environment(
        loader=FunctionLoader(dict(files).get),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS)
    return environment


def list_templates() -> list[Template]:
    folders = (entry for entry in files("kernelproof.prompts").iterdir() if entry.is_dir())
    found = [_read(folder) for folder in folders if folder.joinpath("template.toml").is_file()]
    return sorted(found, key=lambda template: template.name)


def open_template(template: str) -> Template:
    """A packaged template by its name (`basic-v1`), or a folder of the user's by its path (`./mine`).

    Raises UsageError for an unknown name (with the names there are) and for an incomplete folder.
    """
    if os.sep in template or template.startswith((".", "~")):
        return _read(user_path(template))
    if (found := _packaged_template(template)) is None:
        raise UsageError(
            f"no template {template!r}; there are: {', '.join(each.name for each in list_templates())}; "
            f"a folder of your own is given by its path, as ./{template}"
        )
    return found


@functools.lru_cache(maxsize=64)
def _packaged_template(name: str) -> Template | None:
    folder = _packaged(name)
    return None if folder is None else _read(folder)


def example(backend: str) -> dict[str, str]:
    """The worked example for a backend: `model.py`, a reference, and the answer to it."""
    folder = files("kernelproof.prompts").joinpath("examples")
    names = ("model.py", f"{checked_backend(backend)}.py")
    return {name: folder.joinpath(name).read_text(encoding="utf-8") for name in names}


def default_template(name: str) -> str:
    """The template of a backend, where the user names none. Raises UsageError for an unknown backend."""
    return backend(name).template


def checked_for_plans(template: Template) -> Template:
    """`template`, or UsageError when it has no words for plans."""
    missing = [name for name in FOR_PLANS if name not in template.files]
    if missing:
        having = [each.name for each in list_templates() if all(name in each.files for name in FOR_PLANS)]
        raise UsageError(
            f"template {template.name} cannot ask for plans, as strategy ideas does: it lacks "
            f"{', '.join(missing)}; {' and '.join(having)} can"
        )
    return template


def checked_backend(name: str) -> str:
    """`name`, or UsageError when there is no such backend."""
    return backend(name).name


def _packaged(name: str) -> Traversable | None:
    folder = files("kernelproof.prompts").joinpath(name)
    known = re.fullmatch(r"[\w-]+", name) and folder.joinpath("template.toml").is_file()
    return folder if known else None


def _read(folder: Traversable) -> Template:
    where = str(folder)
    if not folder.is_dir():
        raise UsageError(f"template {where} is not a folder; it must hold {', '.join(REQUIRED)}")
    texts: dict[str, str] = {}
    for entry in folder.iterdir():
        if entry.is_file() and (entry.name.endswith(".j2") or entry.name == "template.toml"):
            try:
                texts[entry.name] = read_regular(Path(str(entry))).decode("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise UsageError(f"template {where}: {entry.name} cannot be read: {error}") from error
    texts = _extended(texts, where)
    missing = [name for name in REQUIRED if name not in texts]
    if missing:
        raise UsageError(f"template {where} lacks {', '.join(missing)}; see docs/reference/prompts.md")
    facts = _facts(texts["template.toml"], where)
    return Template(f"{facts['name']}-v{facts['version']}", facts["description"], texts, where)


def _extended(texts: dict[str, str], where: str) -> dict[str, str]:
    """The files with those of the template that `extends` names, of which a file's own version goes before.

    `{% include 'basic-v4/system.j2' %}` then still reaches the other one.
    """
    base = _facts(texts["template.toml"], where).get("extends") if "template.toml" in texts else None
    if base is None:
        return texts
    folder = _packaged(str(base))
    if folder is None:
        raise UsageError(f"template {where}: it extends {base!r}, which is no packaged template")
    theirs = {name: text for name, text in _read(folder).files.items() if name != "template.toml"}
    return theirs | {f"{base}/{name}": text for name, text in theirs.items() if name in texts} | texts


def _facts(text: str, where: str) -> dict[str, Any]:
    try:
        facts = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"template {where}: template.toml: {error}") from error
    for key, kind in _KEYS.items():
        if not isinstance(facts.get(key), kind):
            raise UsageError(f"template {where}: template.toml must hold {key} as {kind.__name__}")
    return facts
