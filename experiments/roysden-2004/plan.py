"""Which runs: versions of columnsort, what else the machine does, settings of the stages, and the order in which they take turns."""

import dataclasses
import random

# The two versions of the paper's section 4. The I/O-bound one sorts twice as much.
VERSIONS = {"compute": 1, "io": 2}

# Sorters of the default. Two where computing limits: with one its thread limits and a quarter of the CPUs is idle, while the
# paper's version used 195 % of two CPUs.
SORTERS = {"compute": 2, "io": 1}

# Roysden's settings (Tables 3 and 4), then what Linux offers beyond.
PUBLISHED_ARMS = ("default", "nice-down-io", "nice-up-io", "adjust-once", "adjust-up-down")
FURTHER_ARMS = ("short-slices", "short-and-long-slices", "batch", "idle", "affinity", "one-sorter", "replicate", "workers", "auto")
ARMS = PUBLISHED_ARMS + FURTHER_ARMS

CONDITIONS = {
    "alone": "nothing else runs",
    "hog": "one program of one thread computes all the time",
    "gang": "a gang of cosched; the other gang computes on all CPUs",
}


# What an arm means to `cosched-columnsort sort`, where it is not a rule of --priorities. All but "workers" have a thread for each
# stage, as FG had. {version} is the resource that limits.
WORDS = {
    "batch": ("--priorities", "batch-rest-of-{version}"),
    "idle": ("--priorities", "idle-rest-of-{version}"),
    "affinity": ("--affinity",),
    "workers": ("--executor", "workers"),
}


# More sorters or fewer than the default.
MORE = {"one-sorter": -1, "replicate": 1}


def exists(arm, version):
    """Whether an arm is another one than the default."""
    return SORTERS[version] + MORE.get(arm, 0) >= 1


def words(arm, version):
    """The options of an arm."""
    found = [word.format(version=version) for word in WORDS.get(arm, () if arm in MORE else ("--priorities", arm))]
    found += ["--incarnations", str(SORTERS[version] + MORE.get(arm, 0))]
    return found if arm == "workers" else ["--executor", "threads", *found]


@dataclasses.dataclass(frozen=True)
class Run:
    """One execution of columnsort."""

    version: str
    condition: str
    arm: str
    repetition: int
    check: bool = False  # the default once more: what differs from the default then is noise

    def key(self):
        """What names it in the journal."""
        return f"{self.version}/{self.condition}/{self.name()}/{self.repetition}"

    def name(self):
        """Its arm in the report."""
        return "default again" if self.check else self.arm


def runs(versions, conditions, arms, repetitions, seed=2004):
    """All runs. In each repetition every arm has its turn once, in an order that is drawn, beside the default a second time."""
    draw = random.Random(seed)
    planned = []
    for repetition in range(repetitions):
        for version in versions:
            for condition in conditions:
                block = [Run(version, condition, arm, repetition) for arm in arms if exists(arm, version)]
                block.append(Run(version, condition, "default", repetition, check=True))
                draw.shuffle(block)
                planned += block
    return planned
