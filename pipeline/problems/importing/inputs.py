"""Arguments that the user says as JSON, and the Python that makes them.

Example: the input `[128, 512]` is `torch.randn(128, 512)`.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from kernelproof.errors import UsageError

INPUTS_FORM = '[[128, 512], {"shape": [16], "dtype": "int64", "high": 100}]'
INIT_FORM = '[64, 0.5, "gelu"]'
FLOATS = {
    "float32": 3.4028234663852886e38,
    "float64": 1.7976931348623157e308,
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
}
"""Name to the largest number."""
INTEGERS = {
    "int64": (-(2**63), 2**63 - 2),  # torch.randint takes no high above 2**63 - 1
    "int32": (-(2**31), 2**31 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int8": (-128, 127),
    "uint8": (0, 255),
}
"""Name to the smallest and the largest number that can be drawn."""
_KEYS = ("shape", "dtype", "low", "high")


def init_arguments(text: str) -> list[str]:
    """The Python of each constructor argument. Raises UsageError where `text` is no JSON list."""
    return [_literal(value, "--init") for value in _list(text, "--init", INIT_FORM)]


def inputs(text: str) -> list[str]:
    """The Python that makes each argument of forward. Raises UsageError for what is no JSON list of inputs.

    A list is a shape, of normal float32 numbers. An object has a `shape` and may have a `dtype` and bounds,
    `low` and `high`; `{"value": 3}` is the value itself.
    """
    return [_input(value, index) for index, value in enumerate(_list(text, "--inputs", INPUTS_FORM))]


def _list(text: str, option: str, form: str) -> list[Any]:
    try:
        value = json.loads(text, parse_constant=lambda word: _refuse_word(word, option))
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{option} is no JSON at character {error.pos + 1}: {text[error.pos : error.pos + 20]!r}; "
            f"write a list such as '{form}'"
        ) from None
    except RecursionError:
        raise UsageError(f"{option} is nested too deep; write a list such as '{form}'") from None
    if not isinstance(value, list):
        raise UsageError(f"{option} must be a JSON list, such as '{form}'")
    return value


def _refuse_word(word: str, option: str) -> NoReturn:
    raise UsageError(f"{option}: {word} is no JSON number; leave it out")


def _literal(value: Any, option: str) -> str:
    for each in _numbers(value):
        if not math.isfinite(each):
            raise UsageError(f"{option}: a number is too large; the largest is 1.8e308")
    return repr(value)


def _numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for each in value for number in _numbers(each)]
    return [value] if isinstance(value, float) else []


def _input(value: Any, index: int) -> str:
    said = f"--inputs, input {index}"
    if isinstance(value, list):
        return f"torch.randn({_shape(value, said)})"
    if not isinstance(value, dict):
        raise UsageError(
            f"{said}: {value!r} is no input; write a shape in brackets, [128, 512], "
            'or a value as {"value": 3}'
        )
    if "value" in value:
        if len(value) > 1:
            raise UsageError(f"{said}: beside value nothing else can be said; leave out the rest")
        return _literal(value["value"], said)
    for key in value:
        if key not in _KEYS:
            raise UsageError(f"{said}: no {key!r} can be said; there are {', '.join(_KEYS)}, and value alone")
    if "shape" not in value:
        raise UsageError(
            f'{said}: it has no shape; write one, as {{"shape": [16], "dtype": "int64", "high": 100}}'
        )
    shape = _shape(value["shape"], said)
    dtype = value.get("dtype", "float32")
    if not isinstance(dtype, str):
        _refuse_type(dtype, said)
    if dtype in INTEGERS:
        return _whole(value, shape, dtype, said)
    if dtype in FLOATS:
        return _floating(value, shape, dtype, said)
    if dtype == "bool":
        _refuse_bounds(value, said)
        return f"torch.randint(0, 2, ({_tuple(shape)}), dtype=torch.bool)"
    _refuse_type(dtype, said)


def _refuse_type(dtype: Any, said: str) -> NoReturn:
    raise UsageError(f"{said}: no dtype {dtype!r}; there are {', '.join((*FLOATS, *INTEGERS, 'bool'))}")


def _shape(value: Any, said: str) -> str:
    if not isinstance(value, list) or not all(type(each) is int and each > 0 for each in value):
        raise UsageError(
            f"{said}: {json.dumps(value)} is no shape; a shape is a list of whole numbers above 0"
        )
    return ", ".join(map(str, value)) or "()"


def _whole(value: dict[str, Any], shape: str, dtype: str, said: str) -> str:
    low, high = value.get("low", 0), value.get("high")
    if type(low) is not int or type(high) is not int or low >= high:
        raise UsageError(
            f"{said}: whole numbers need a high, one above the largest, and above low, which is 0 or given"
        )
    smallest, largest = INTEGERS[dtype]
    if low < smallest or high > largest + 1:
        raise UsageError(f"{said}: {dtype} takes a low from {smallest} and a high up to {largest + 1}")
    name = "" if dtype == "int64" else f", dtype=torch.{dtype}"
    return f"torch.randint({low}, {high}, ({_tuple(shape)}){name})"


def _floating(value: dict[str, Any], shape: str, dtype: str, said: str) -> str:
    name = "" if dtype == "float32" else f", dtype=torch.{dtype}"
    largest = FLOATS[dtype]
    if "low" not in value and "high" not in value:
        return f"torch.randn({shape}{name})"
    low, high = value.get("low", 0.0), value.get("high", 1.0)
    for each in (low, high):
        if isinstance(each, bool) or not isinstance(each, int | float):
            raise UsageError(f"{said}: {each!r} is no bound; low and high are numbers")
    if low >= high:
        raise UsageError(f"{said}: low must be below high (0 and 1 unless given)")
    if max(abs(low), abs(high)) > largest or float(high) - float(low) > largest:
        raise UsageError(
            f"{said}: {dtype} takes bounds that lie at most {largest:.6g} from 0 and from each other"
        )
    return f"torch.empty({shape}{name}).uniform_({low!r}, {high!r})"


def _refuse_bounds(value: dict[str, Any], said: str) -> None:
    if "low" in value or "high" in value:
        raise UsageError(f"{said}: booleans have no low and high; leave them out")


def _tuple(shape: str) -> str:
    """`16` is the inside of `(16,)`, and `()` of `()`."""
    return "" if shape == "()" else shape + ("," if "," not in shape else "")
