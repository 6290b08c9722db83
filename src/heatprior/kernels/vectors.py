"""Vectors as wide as the processor has them.

Where a processor has vectors of 512 bits the compiler still works with 256: the first such processors slowed down under
the wide ones. Since then they do not, and the library of matrix products uses them anyway. `widest_vectors()` as the
first statement of a kernel asks for them; elsewhere it does nothing. The wish belongs to a function of the compiler, so
that what is inlined into a kernel follows the kernel's.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

_WISH = '"prefer-vector-width"="512"'


def _widest_vectors(_):
    def generate(context, builder, signature, arguments):  # noqa: ARG001
        attributes = builder.function.attributes
        if isinstance(attributes, set):  # as it is now; without, all works as well, but slower
            set.add(attributes, _WISH)  # its own `add` knows only some attributes
        return context.get_dummy_value()

    return types.void(), generate


widest_vectors: Any = intrinsic(_widest_vectors)
