"""Keeps what is finished in a journal: efficiencies by the model, and the checks beside the simulator."""

import hashlib
import json

import check
import plan
import shared
import windows


class Runner:
    def __init__(self, program, folder):
        self.program = str(program)
        folder.mkdir(parents=True, exist_ok=True)
        self.program_hash = hashlib.sha256(program.read_bytes()).hexdigest()[:16]
        here = shared.ROOT / "experiments/fujitsu-2023"
        constants = [plan.NODES, plan.SWITCH, plan.WAKE, plan.MESSAGE, plan.SKEW, plan.WAYS, plan.SCAN]
        self.inputs_hash = hashlib.sha256((json.dumps(constants) + (here / "windows.py").read_text() + (here / "check.py").read_text()).encode()).hexdigest()[:16]
        self.journal = shared.Journal(folder / "runs.jsonl")

    def kept(self, key, make):
        """The value under the key; `make` None: None if there is none yet."""
        key = json.dumps([*key, self.inputs_hash])
        if key not in self.journal.entries and make:
            self.journal.add(key, value=make())
        return self.journal.entries.get(key, {}).get("value")

    def efficiencies(self, program, way, slot, draws, simulate=True):
        """One for each draw; None if one is missing, or the way has no time for its orders."""
        found = [self.kept([program, way, slot, draw, plan.turns(slot)], simulate and (lambda: windows.efficiency(program, way, slot, draw))) for draw in range(1, draws + 1)]
        return None if None in found else found

    def checked(self, setting, simulate=True):
        """Pairs of times, by the model and by the simulator."""
        pairs = [self.kept(["check", *setting, draw, self.program_hash], simulate and (lambda: [check.model_s(*setting, draw), check.simulator_s(self.program, *setting, draw)])) for draw in range(1, plan.CHECK_DRAWS + 1)]
        return None if None in pairs else pairs
