"""What mutants and twins are made of. A candidate is a problem's text, this file's text, and a few lines.

Operators are changed where torch dispatches them: by then a layer, a function and a method are one operator,
and its arguments have the names of its schema.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map, tree_map_only

Named = dict[str, Any]
"""An operator's arguments, by the schema's names."""
PRODUCTS = {
    "mm": ("self", "mat2"),
    "bmm": ("self", "mat2"),
    "mv": ("self", "vec"),
    "addmm": ("mat1", "mat2"),
    "baddbmm": ("batch1", "batch2"),
    "convolution": ("input", "weight"),
    "_scaled_dot_product_flash_attention_for_cpu": ("query", "key", "value"),
    "_scaled_dot_product_flash_attention": ("query", "key", "value"),
    "_scaled_dot_product_efficient_attention": ("query", "key", "value"),
    "_scaled_dot_product_cudnn_attention": ("query", "key", "value"),
}
"""Products, with the arguments that are multiplied."""
REDUCTIONS = {
    *("sum", "mean", "amax", "amin", "max", "min", "argmax", "argmin", "prod", "var", "std", "var_mean"),
    *(
        "logsumexp",
        "linalg_vector_norm",
        "norm",
        "_softmax",
        "_log_softmax",
        "cumsum",
        "cumprod",
        "any",
        "all",
    ),
}
FUNCTIONS = {
    *("relu", "leaky_relu", "gelu", "silu", "mish", "elu", "selu", "softplus", "tanh", "sigmoid", "hardtanh"),
    *("hardswish", "hardsigmoid", "clamp", "clamp_min", "clamp_max", "exp", "abs", "sqrt", "_softmax"),
}
"""Functions of each element, or of rows, whose result has the form of their input."""
CONSTANTS = {
    *("other", "exponent", "min", "max", "negative_slope", "alpha", "beta", "scale", "input_scale", "scalar"),
    *("value", "lambd", "threshold", "min_val", "max_val"),
}
"""Names of arguments that are numbers of the computation."""
SMALL = 1e-3
"""What is added or clamped to, and smaller than this, keeps a divisor from zero."""


def bound(func: Any, args: Sequence[Any], kwargs: Named) -> Named:
    """The arguments of a call, by the schema's names, defaults included."""
    named = {}
    for place, argument in enumerate(func._schema.arguments):
        if place < len(args):
            named[argument.name] = args[place]
        elif argument.name in kwargs or argument.has_default_value():
            named[argument.name] = kwargs.get(argument.name, argument.default_value)
    return named


def called(func: Any, named: Named) -> Any:
    """The operator's result for these arguments."""
    known = [argument for argument in func._schema.arguments if argument.name in named]
    args = [named[argument.name] for argument in known if not argument.kwarg_only]
    return func(*args, **{argument.name: named[argument.name] for argument in known if argument.kwarg_only})


def operator_name(func: Any) -> str:
    """`add` for aten.add.Tensor and aten.add_.Tensor."""
    name = str(func._schema.name).partition("::")[2]
    return name if name.startswith("_") else name.rstrip("_")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _of_floats(named: Named) -> bool:
    first = named.get("self", named.get("input"))
    return isinstance(first, torch.Tensor) and first.is_floating_point()


def _keeps_from_zero(name: str, argument: str, value: Any) -> bool:
    if argument in ("eps", "epsilon"):
        return _is_number(value)
    guards = (name == "add" and argument == "other") or (name.startswith("clamp") and argument == "min")
    return guards and _is_number(value) and 0 < value < SMALL


def sites(kind: str, func: Any, named: Named) -> Iterator[str]:
    """The arguments of one call that a mutation of this kind could change."""
    name = operator_name(func)
    for argument in func._schema.arguments:
        value: Any = named.get(argument.name)
        tensor = isinstance(value, torch.Tensor)
        match kind:
            case "constant":
                number = _is_number(value) and value not in (0, argument.default_value) and abs(value) < 1e30
                fits = number and argument.name in CONSTANTS and "int" not in str(argument.type)
                fits = fits and _of_floats(named) and not _keeps_from_zero(name, argument.name, value)
            case "eps":
                fits = _keeps_from_zero(name, argument.name, value)
            case "bias":
                fits = tensor and _is_bias(name, argument.name, named)
            case "gelu":
                fits = name == "gelu" and argument.name == "approximate"
            case "operands":
                fits = name in PRODUCTS and argument.name == PRODUCTS[name][0]
            case "statistic":
                fits = tensor and argument.name == "running_mean" and named.get("training", True)
            case "diagonal":
                fits = name in ("tril", "triu") and argument.name == "diagonal"
            case "mask":
                fits = tensor and value.dtype == torch.bool and argument.name in ("mask", "condition")
            case "causal":
                fits = argument.name == "is_causal" and value is True
            case "axis":
                fits = argument.name == "dim" and name in REDUCTIONS and value not in (None, [])
            case "function":
                fits = argument.name == "self" and name in FUNCTIONS and _of_floats(named)
            case "term":
                fits = argument.name == next(iter(_summed_axes(name, named)), None)
            case "transposed":
                right = PRODUCTS.get(name, ("", ""))[1]
                fits = tensor and argument.name == right == "mat2" and value.shape[-1] == value.shape[-2]
            case _:
                raise ValueError(kind)
        if fits:
            yield argument.name


def _is_bias(name: str, argument: str, named: Named) -> bool:
    value = named[argument]
    if name == "addmm":
        return argument == "self" and value.dim() == 1
    if name == "add":
        return argument == "other" and isinstance(value, torch.nn.Parameter) and value.numel() > 1
    return argument == "bias"


def rounded(tensor: torch.Tensor, name: str) -> torch.Tensor:
    """`tensor` with values that TF32, half or bfloat16 hold, to nearest, in its own dtype."""
    if not tensor.is_floating_point():
        return tensor
    if name != "tf32":
        return tensor.to(getattr(torch, name)).to(tensor.dtype)
    bits = tensor.float().view(torch.int32)
    bits = (bits + 0xFFF + ((bits >> 13) & 1)) & ~0x1FFF
    return bits.view(torch.float32).to(tensor.dtype)


class Calls(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Hands on each call of an operator; `applied` says whether one was made otherwise."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.applied = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Named | None = None) -> Any:
        self.given = args, kwargs or {}
        result = self.otherwise(func, bound(func, *self.given))
        if result is NotImplemented:
            return func(*args, **(kwargs or {}))
        self.applied = True
        return result

    def otherwise(self, func: Any, named: Named) -> Any:
        """The result of a call that is made otherwise, or NotImplemented."""
        raise NotImplementedError


def under(mode: Calls, forward: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    """`forward(*inputs)` under a mode. Raises RuntimeError where that changes nothing."""
    with mode:
        result = forward(*inputs)
    if not mode.applied:
        raise RuntimeError("nothing to change here")
    return result


class Changed(Calls):  # type: ignore[no-untyped-call]
    """Changes the calls of one kind: the `which`-th place that there is, or all with None."""

    def __init__(self, kind: str, which: int | None, value: Any = None) -> None:
        super().__init__()
        self.kind, self.which, self.value, self.seen = kind, which, value, 0

    def otherwise(self, func: Any, named: Named) -> Any:
        places = list(sites(self.kind, func, named))
        chosen = [p for n, p in enumerate(places, self.seen) if self.which is None or n == self.which]
        self.seen += len(places)
        if not chosen:
            return NotImplemented
        if self.kind == "causal":
            return (_sees_one_more(named), *called(func, named)[1:])
        if self.kind == "function":
            return named["self"].clone()
        if self.kind == "statistic":
            statistics = {name: named[name].clone() for name in ("running_mean", "running_var")}
            return called(func, named | statistics)
        for place in chosen:
            self._change(operator_name(func), named, place)
        return called(func, named)

    def _change(self, name: str, named: Named, place: str) -> None:
        value = named[place]
        match self.kind:
            case "constant" | "eps":
                named[place] = value * self.value
            case "bias":
                named[place] = torch.zeros_like(value)
            case "gelu":
                named[place] = self.value
            case "operands":
                named |= {operand: rounded(named[operand], self.value) for operand in PRODUCTS[name]}
            case "diagonal":
                named[place] = value + self.value
            case "mask":
                named[place] = value.roll(self.value, -1)
            case "axis":
                first, *others = value if isinstance(value, list | tuple) else [value]
                if self.value >= named["self"].dim():
                    raise RuntimeError("nothing to change here: as many steps lead back")
                moved = (first + self.value) % named["self"].dim()
                named[place] = [moved, *others] if isinstance(value, list | tuple) else moved
            case "term":
                for operand, axis in _summed_axes(name, named).items():
                    named[operand] = named[operand].narrow(axis, 0, named[operand].shape[axis] - 1)
            case "transposed":
                named[place] = value.mT


def _sees_one_more(named: Named) -> torch.Tensor:
    """Causal attention in which every position sees the next one, too."""
    query, key = named["query"], named["key"]
    scale = named.get("scale") or query.shape[-1] ** -0.5
    seen = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril(1)
    scores = (query @ key.mT * scale).masked_fill(~seen, -torch.inf)
    sums: torch.Tensor = torch.softmax(scores, dim=-1) @ named["value"]
    return sums


def with_last_zero(outputs: Any) -> Any:
    """The outputs with the last element of each tensor zero."""

    def change(tensor: torch.Tensor) -> torch.Tensor:
        tensor = tensor.clone(memory_format=torch.contiguous_format)
        tensor.view(-1)[-1:] = 0
        return tensor

    return tree_map_only(torch.Tensor, change, outputs)


def with_few_scaled(values: Any, factor: float) -> Any:
    """The tensors of floats with one element in a thousand times `factor`, one at least."""

    def change(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_floating_point():
            tensor = tensor.clone(memory_format=torch.contiguous_format)
            tensor.view(-1)[min(500, tensor.numel() // 2) :: 1000] *= factor
        return tensor

    return tree_map_only(torch.Tensor, change, values)


def then_changed(result: Any, inputs: Sequence[Any], last: bool) -> Any:
    """`result`, after the first input of floats was changed in place: all of it, or its last element."""
    tensor = next(each for each in inputs if isinstance(each, torch.Tensor) and each.is_floating_point())
    if last:
        tensor[(-1,) * tensor.dim()] += 1
    else:
        tensor *= 1.001
    return result


def in_float64(model: torch.nn.Module, forward: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    """`forward(*inputs)` with float32 weights and inputs in float64; the results are rounded once."""
    held = [t for t in (*model.parameters(), *model.buffers()) if t.dtype == torch.float32]
    before = [tensor.data for tensor in held]
    narrow = held or any(isinstance(x, torch.Tensor) and x.dtype == torch.float32 for x in inputs)
    try:
        for tensor in held:
            tensor.data = tensor.data.double()
        result = forward(*tree_map(_wide, tuple(inputs)))
        for tensor, data in zip(held, before, strict=True):
            data.copy_(tensor.data)
    finally:
        for tensor, data in zip(held, before, strict=True):
            tensor.data = data
    if not narrow:
        return result
    return tree_map_only(torch.Tensor, lambda t: t.float() if t.dtype == torch.float64 else t, result)


def _wide(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.dtype == torch.float32 else value


def in_channels_last(model: torch.nn.Module, forward: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    """`forward(*inputs)` with images and volumes, and the weights for them, in channels-last layout."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}

    def laid_out(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dim() in formats:
            return value.contiguous(memory_format=formats[value.dim()])
        return value

    for weight in model.parameters():
        weight.data = laid_out(weight.data)
    return tree_map_only(torch.Tensor, torch.Tensor.contiguous, forward(*tree_map(laid_out, tuple(inputs))))


def in_two_parts(forward: Callable[..., Any], inputs: Sequence[Any], split: Sequence[int]) -> Any:
    """`forward` of both halves of the inputs that `split` names, along dimension 0, and put together."""
    half = inputs[split[0]].shape[0] // 2
    if half == 0:
        raise ValueError("a batch of one has no two parts")
    parts = [
        forward(*[each[part] if place in split else each for place, each in enumerate(inputs)])
        for part in (slice(None, half), slice(half, None))
    ]
    return tree_map(lambda first, second: torch.cat((first, second)), *parts)


class Decomposed(Calls):  # type: ignore[no-untyped-call]
    """Replaces each operator that torch has a decomposition for by its parts."""

    def otherwise(self, func: Any, named: Named) -> Any:
        from torch._decomp import decomposition_table

        if func not in decomposition_table or func.is_view or torch.Tag.nondeterministic_seeded in func.tags:
            return NotImplemented
        args, kwargs = self.given
        return decomposition_table[func](*args, **kwargs)


class Resummed(Calls):  # type: ignore[no-untyped-call]
    """Adds up in another order: both halves of every sum apart, or, `reverse`d, from the end."""

    def __init__(self, reverse: bool) -> None:
        super().__init__()
        self.reverse = reverse

    def otherwise(self, func: Any, named: Named) -> Any:
        name = str(func._schema.name).partition("::")[2]
        axes = _summed_axes(name, named)
        if not axes:
            return NotImplemented
        if self.reverse:
            return called(func, named | {place: named[place].flip(axis) for place, axis in axes.items()})
        length = max(named[place].shape[axis] for place, axis in axes.items())
        starts = ((0, length // 2), (length // 2, length - length // 2))
        first, second = (
            called(func, named | {place: named[place].narrow(a, *start) for place, a in axes.items()} | more)
            for start, more in zip(starts, ({}, _without_bias(name, named)), strict=True)
        )
        if name == "mean":
            return first * (starts[0][1] / length) + second * (starts[1][1] / length)
        return first + second


def _summed_axes(name: str, named: Named) -> dict[str, int]:
    """The operands of a sum or a product, with the axis of each that is summed over."""
    if name in ("sum", "mean") and named["self"].is_floating_point() and named["self"].dim():
        dims = named.get("dim")
        axes = {"self": dims[0] if dims else 0}
    elif name in ("mm", "bmm", "addmm", "baddbmm"):
        left, right = PRODUCTS[name]
        axes = {left: -1, right: -2}
    elif name == "convolution" and named["groups"] == 1:
        axes = {"input": 1, "weight": 0 if named["transposed"] else 1}
    else:
        return {}
    return axes if all(named[place].shape[axis] >= 2 for place, axis in axes.items()) else {}


def _without_bias(name: str, named: Named) -> Named:
    """Changes to the second half of a product, since the first has the bias."""
    if name in ("addmm", "baddbmm"):
        return {"beta": 0}
    return {"bias": None} if name == "convolution" else {}
