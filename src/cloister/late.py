"""Libraries that take long to load, loaded when something of theirs is first used.

SciPy takes longer to load than all of Cloister, and most commands need none of it. So a module does not import it but
names it, once and for all, where its imports are::

    special = load_late("scipy.special")

and ``special.ndtri(x)`` loads it. `compiled` does the same for numba, and the registry of protocols for their roles.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class _Late:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked for by tools that look at everything, such as inspect
            raise AttributeError(name)
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)  # found without this method from now on
        return value


def load_late(name: str) -> Any:
    """Return what stands for a library's module, and imports it when an attribute is first asked for."""
    return _Late(name)
