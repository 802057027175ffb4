#!/usr/bin/env python3
"""Denoises a file of samples and ranks them, block by block: once serially, once as a pipeline; compares results and times.

Reading, two NumPy stages and writing overlap: NumPy and file I/O release the interpreter lock.

    python3 transform.py [--blocks 24] [--block-mib 2]
"""

import argparse
import pathlib
import sys
import tempfile
import time

import numpy

from cosched.pipeline import Flow, Pipeline


def denoise(block):
    """Removes weak frequencies from the samples, in place."""
    spectrum = numpy.fft.rfft(block)
    strength = numpy.abs(spectrum)
    spectrum[strength < numpy.median(strength)] = 0
    block[:] = numpy.fft.irfft(spectrum, len(block))


def rank(block):
    """Replaces each sample by its rank."""
    block[numpy.argsort(block, kind="stable")] = numpy.arange(len(block))


def serially(source, target, block_bytes):
    """The straightforward serial program."""
    memory = bytearray(block_bytes)
    with source.open("rb", buffering=0) as reading, target.open("wb", buffering=0) as writing:
        while size := reading.readinto(memory):
            block = numpy.frombuffer(memory, count=size // 8)
            denoise(block)
            rank(block)
            writing.write(memoryview(memory)[:size])


class Read:
    """The first stage of the path."""

    def __init__(self, source):
        self.source = source

    def init(self):
        self.file = self.source.open("rb", buffering=0)

    def __call__(self, buffer):
        buffer.resize(self.file.readinto(buffer.storage))
        return Flow.MORE if len(buffer) else Flow.END

    def cleanup(self):
        self.file.close()


def as_pipeline(source, target, block_bytes):
    """The same with each step as a stage."""
    pipeline = Pipeline("transform", buffers=5, size_bytes=block_bytes)
    with target.open("wb", buffering=0) as writing:
        pipeline.stage("read", resource="io")(Read(source))
        # The array is not kept in a variable, so it no longer exists when the stage returns.
        pipeline.stage("denoise")(lambda buffer: denoise(numpy.frombuffer(buffer)))
        pipeline.stage("rank")(lambda buffer: rank(numpy.frombuffer(buffer)))

        @pipeline.stage("write", resource="io")
        def write(buffer):
            writing.write(buffer)

        return pipeline.run()


def timed(work, *arguments):
    begin = time.perf_counter()
    result = work(*arguments)
    return time.perf_counter() - begin, result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=24, help="how many blocks [default: 24]")
    parser.add_argument("--block-mib", type=float, default=2, help="how large a block is, MiB [default: 2]")
    options = parser.parse_args()
    # An even number of samples, so that irfft returns as many as rfft got.
    block_bytes = max(16, int(options.block_mib * 2**20) // 16 * 16)

    with tempfile.TemporaryDirectory(prefix="cst-") as scratch:
        source, one, other = (pathlib.Path(scratch, name) for name in ("samples", "serial", "pipeline"))
        numpy.random.default_rng(1).normal(size=options.blocks * block_bytes // 8).tofile(source)
        serial_s, _ = timed(serially, source, one, block_bytes)
        pipeline_s, report = timed(as_pipeline, source, other, block_bytes)
        if one.read_bytes() != other.read_bytes():
            print("transform: the pipeline's result is not that of the serial program", file=sys.stderr)
            return 1
    for stage in report["stages"]:
        print(f"{stage['name']:10} {stage['rounds']:6} blocks {stage['busy_s']:8.3f} s at work")
    print(f"serial {serial_s:.3f} s, pipeline {pipeline_s:.3f} s, ratio {pipeline_s / serial_s:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
