#!/usr/bin/env python3
"""Layers of products of a matrix and a vector by ggml, as a language model computes a token: ggml_layers.py LIBRARIES THREADS SECONDS

LIBRARIES is a folder with ggml's shared libraries, such as that of an unpacked wheel (`pip download --no-deps pywhispercpp`). All threads meet after
each layer. Prints tokens per second as JSON ("iterations_per_s").
"""

import ctypes
import json
import pathlib
import sys
import time

LAYERS, WIDTH, F32 = 64, 256, 0


class InitParams(ctypes.Structure):
    _fields_ = [("mem_size", ctypes.c_size_t), ("mem_buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool)]


class Plan(ctypes.Structure):
    """struct ggml_cplan, and room for what later versions add."""

    _fields_ = [("work_size", ctypes.c_size_t), ("work_data", ctypes.c_void_p), ("n_threads", ctypes.c_int), ("rest", ctypes.c_void_p * 8)]


def loaded(folder):
    """The libraries of the processor's part and of what it needs, in the order in which they need each other."""
    found = [next(iter(sorted(pathlib.Path(folder).glob(pattern))), None) for pattern in ("libgomp*.so*", "libggml-base*.so*", "libggml-cpu*.so*")]
    if found[2] is None or found[1] is None:
        sys.exit(f"ggml_layers: {folder} has no libggml-base and libggml-cpu")
    return [ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL) for path in found if path][-2:]


def graph(base):
    """A vector through all layers."""
    pointer = ctypes.c_void_p
    for name in ("ggml_init", "ggml_new_tensor_2d", "ggml_mul_mat", "ggml_new_graph", "ggml_set_zero"):
        getattr(base, name).restype = pointer
    context = pointer(base.ggml_init(InitParams(2 * LAYERS * WIDTH * WIDTH * 4 + (16 << 20), None, False)))
    new = lambda columns: pointer(base.ggml_set_zero(pointer(base.ggml_new_tensor_2d(context, F32, ctypes.c_int64(WIDTH), ctypes.c_int64(columns)))))
    vector = new(1)
    for _ in range(LAYERS):
        vector = pointer(base.ggml_mul_mat(context, new(WIDTH), vector))
    result = pointer(base.ggml_new_graph(context))
    base.ggml_build_forward_expand(result, vector)
    return result


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    threads, seconds = int(sys.argv[2]), float(sys.argv[3])
    base, processor = loaded(sys.argv[1])
    tokens = graph(base)
    processor.ggml_graph_plan.restype = Plan
    plan = processor.ggml_graph_plan(tokens, threads, None)
    work = ctypes.create_string_buffer(max(1, plan.work_size))
    plan.work_data = ctypes.addressof(work)
    done, begin = 0, time.monotonic()
    while time.monotonic() - begin < seconds:
        if processor.ggml_graph_compute(tokens, ctypes.byref(plan)):
            sys.exit("ggml_layers: ggml could not compute")
        done += 1
    print(json.dumps({"program": "ggml", "threads": threads, "iterations_per_s": done / (time.monotonic() - begin)}))


if __name__ == "__main__":
    main()
