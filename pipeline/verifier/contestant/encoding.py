"""Values as JSON: numbers, containers and dtypes in full, tensors as specs of where their bytes lie."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from kernelproof.verifier.contestant.wire import WireError


def encode(value: Any, tensor: Callable[[Any], dict[str, Any]]) -> Any:
    """A Python value as JSON: None, bool, int, float, str, torch dtype, and tensors in lists, tuples, dicts.

    `tensor` turns a tensor into its spec (and puts its bytes where the spec says). Raises TypeError for
    a value of any other type.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, torch.Tensor):
        return {"$tensor": tensor(value)}
    if isinstance(value, tuple):
        return {"$tuple": [encode(item, tensor) for item in value]}
    if isinstance(value, list):
        return [encode(item, tensor) for item in value]
    if isinstance(value, dict):
        return {"$dict": [[encode(k, tensor), encode(v, tensor)] for k, v in value.items()]}
    if isinstance(value, torch.dtype):
        return {"$dtype": dtype_name(value)}
    raise TypeError(f"a value of type {type(value).__name__} cannot be handed to a candidate")


def decode(value: Any, tensor: Callable[[dict[str, Any]], Any]) -> Any:
    """The inverse of `encode`; `tensor` makes a tensor of its spec.

    Raises WireError for what `encode` never made.
    """
    if isinstance(value, list):
        return [decode(item, tensor) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise WireError("an encoded value has one tag")
    ((tag, body),) = value.items()
    try:
        if tag == "$tensor":
            return tensor(body)
        if tag == "$tuple":
            return tuple(decode(item, tensor) for item in body)
        if tag == "$dict":
            return {decode(k, tensor): decode(v, tensor) for k, v in body}
        if tag == "$float":
            return float(body)
        if tag == "$dtype":
            return dtype_of(body)
    except (TypeError, ValueError) as error:
        raise WireError(f"the value of {tag} is malformed: {error}") from None
    raise WireError(f"unknown tag {tag!r}")


def dtype_name(dtype: Any) -> str:
    """`float32` for torch.float32."""
    return str(dtype).removeprefix("torch.")


def dtype_of(name: str) -> Any:
    """torch.float32 for `float32`. Raises WireError for a name that is no dtype."""
    found = getattr(torch, name, None) if isinstance(name, str) else None
    if not isinstance(found, torch.dtype):
        raise WireError(f"{name!r} is no dtype")
    return found


def leaves(value: Any) -> list[Any]:
    """The leaves of nested tuples, lists and dicts (in key order of insertion), left to right."""
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in leaves(item)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    return [value]


def ordered(value: Any) -> Any:
    """`value` with its dicts in the order of their keys' words: a caller takes what they hold by name."""
    if isinstance(value, tuple):
        return tuple(ordered(item) for item in value)
    if isinstance(value, list):
        return [ordered(item) for item in value]
    if isinstance(value, dict):
        return {key: ordered(value[key]) for key in sorted(value, key=str)}
    return value


def structure(value: Any) -> Any:
    """The nesting as JSON: `["tuple", [..]]`, `["dict", [[key, ..]]]`, `"tensor"`, or a type's name.

    Lists and tuples are told apart, as a caller that unpacks by type would.
    """
    if isinstance(value, torch.Tensor):
        return "tensor"
    if isinstance(value, tuple):
        return ["tuple", [structure(item) for item in value]]
    if isinstance(value, list):
        return ["list", [structure(item) for item in value]]
    if isinstance(value, dict):
        return ["dict", [[_key(k), structure(v)] for k, v in value.items()]]
    return type(value).__name__


def _key(key: Any) -> Any:
    return key if type(key) is str else [type(key).__name__, str(key)]


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors among the leaves of nested lists, tuples and dicts, left to right."""
    return [leaf for leaf in leaves(value) if isinstance(leaf, torch.Tensor)]
