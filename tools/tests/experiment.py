"""The modules of an experiment's folder."""

import importlib
import pathlib
import sys

EXPERIMENTS = pathlib.Path(__file__).resolve().parent.parent.parent / "experiments"


def load(*names, folder=EXPERIMENTS):
    """Modules of a folder; the experiments have modules of the same names, which are kept apart."""
    ours = {path.stem for path in folder.glob("*.py")} - {"page", "shared"}
    others = {name: sys.modules.pop(name) for name in ours & sys.modules.keys()}
    sys.path[:0] = [str(folder), str(EXPERIMENTS)]
    try:
        return [importlib.import_module(name) for name in names]
    finally:
        del sys.path[:2]
        for name in ours & sys.modules.keys():
            del sys.modules[name]
        sys.modules.update(others)
