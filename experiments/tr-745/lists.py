"""Lists of jobs: a burst of parallel jobs of many sizes, and two mixes. Each number gives another list."""

import random

HEAD = "arrival_s,tasks,exec_s,type"


def made(kind, job_type, number):
    """(arrival, tasks, execution time alone, type, whether its response time counts) of each job, in the order of arrival."""
    draw = random.Random(f"tr-745 {kind} {number}")
    return sorted(KINDS[kind](draw, job_type))


def mix(draw, job_type):
    """Ten jobs within half a second, on a quarter, half or all of the nodes."""
    for _ in range(10):
        yield draw.uniform(0, 0.5), draw.choice([4, 8, 16]), between(0.1, draw.expovariate(1 / 0.5), 2), job_type, True


def short(draw, job_type):
    """Three jobs of some seconds on all nodes, and ten short ones meanwhile."""
    for _ in range(3):
        yield draw.uniform(0, 0.05), 16, draw.uniform(1, 2), job_type, False
    for _ in range(10):
        yield draw.uniform(0.1, 2), draw.choice([8, 16]), draw.uniform(0.02, 0.08), job_type, True


def serial(draw, job_type):
    """A parallel job on all nodes, and twenty of one task."""
    yield draw.uniform(0, 0.1), 16, draw.uniform(0.5, 1.5), job_type, True
    for _ in range(20):
        yield draw.uniform(0, 0.5), 1, between(0.1, draw.expovariate(1 / 0.5), 2), job_type, False


KINDS = {"mix": mix, "short": short, "serial": serial}


def between(low, value, high):
    return max(low, min(value, high))


def text(jobs):
    return "\n".join([HEAD, *(f"{arrival:.6f},{tasks},{alone:.6f},{kind}" for arrival, tasks, alone, kind, _ in jobs)]) + "\n"
