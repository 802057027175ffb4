"""Creates the files that bindings/cpp/examples/merge.cpp merges, and verifies the result.

Usage: merge_files.py make|verify FOLDER
"""

import array
import pathlib
import random
import sys


def main():
    what, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    runs = [folder / f"run{i}" for i in range(4)]
    if what == "make":
        for run, count in zip(runs, (0, 1, 8192, 50000)):
            run.write_bytes(array.array("Q", sorted(random.getrandbits(64) for _ in range(count))).tobytes())
        return 0
    numbers = array.array("Q", b"".join(run.read_bytes() for run in runs))
    return (folder / "merged").read_bytes() != array.array("Q", sorted(numbers)).tobytes()


if __name__ == "__main__":
    sys.exit(main())
