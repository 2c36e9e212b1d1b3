"""Fully decentralised online learning with multiple kernels.

The public names are listed in `__init__.pyi`, once, with the module that defines each. A module is
imported when one of its names is first used, so that ``import domkl`` is fast.
"""

import ast
import pkgutil
from importlib import import_module
from typing import Any

__version__ = "0.5.0"


def _homes() -> dict[str, str]:
    """Each public name and the module that defines it, as `__init__.pyi` says."""
    stub = pkgutil.get_data(__name__, "__init__.pyi")
    assert stub is not None, "domkl/__init__.pyi must be installed with the package"
    found = {}
    for node in ast.parse(stub).body:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {name.name: node.module for name in node.names}
    return found


_HOMES = _homes()
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'domkl' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
