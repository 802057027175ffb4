"""cosched for Python. `cosched.pipeline` runs programs as pipelines of stages on recycled buffers."""

from cosched._native import __version__

__all__ = ["__version__"]
