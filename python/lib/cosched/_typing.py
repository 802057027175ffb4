"""What `typing` has since Python 3.10 and 3.11. An older interpreter gets something in its place, as it evaluates no hint; a type checker takes
them from typing_extensions, which it knows by itself."""

import sys
from typing import TYPE_CHECKING

__all__ = ["NotRequired", "ParamSpec", "Self", "TypeAlias", "Unpack"]

if sys.version_info >= (3, 11):
    from typing import NotRequired, ParamSpec, Self, TypeAlias, Unpack
elif TYPE_CHECKING:
    from typing_extensions import NotRequired, ParamSpec, Self, TypeAlias, Unpack
else:
    from typing import Any
    from typing import TypeVar as ParamSpec

    NotRequired = Self = TypeAlias = Unpack = Any
