"""Reading and writing an array in a loop that also reads a table: with the word that the two do not overlap.

A loop that fetches from places which depend on the data can be done many elements at a time only if nothing that it
writes may change what it will read. The compiler cannot know that of two arrays, and does one element after the other.
`read`, `write` and `fetch` say it: what `fetch` reads is never what `write` writes. It is a promise that nobody checks.
There are no bounds checks and no negative indices.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array


def _written(builder):
    """The set of all places that are written, by the name that the compiler knows it under."""
    domain = builder.module.add_metadata(["heatprior"])
    return builder.module.add_metadata([builder.module.add_metadata(["written", domain])])


def _place(context, builder, signature, arguments):
    array = make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]], inbounds=True)


def _read(_, array, index):  # noqa: ARG001
    """array[index] of a contiguous array that is written in the same loop."""

    def generate(context, builder, signature, arguments):
        value = builder.load(_place(context, builder, signature, arguments))
        value.set_metadata("alias.scope", _written(builder))
        return value

    return array.dtype(array, types.intp), generate


def _write(_, array, index, value):  # noqa: ARG001
    """array[index] = value."""

    def generate(context, builder, signature, arguments):
        store = builder.store(arguments[2], _place(context, builder, signature, arguments))
        store.set_metadata("alias.scope", _written(builder))
        return context.get_dummy_value()

    return types.void(array, types.intp, array.dtype), generate


def _fetch(_, array, index):  # noqa: ARG001
    """array[index] of a contiguous array that nothing in the loop writes."""

    def generate(context, builder, signature, arguments):
        value = builder.load(_place(context, builder, signature, arguments))
        value.set_metadata("noalias", _written(builder))
        return value

    return array.dtype(array, types.intp), generate


read: Any = intrinsic(_read)
write: Any = intrinsic(_write)
fetch: Any = intrinsic(_fetch)
