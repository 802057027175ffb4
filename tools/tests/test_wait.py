"""tools/bench wait: the names of arms, and what the report reads from made-up runs."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
import arms  # noqa: E402
import live  # noqa: E402
import wait_report  # noqa: E402


def ran(makespan_s, **more):
    return {"makespan_s": makespan_s, "jobs": [{"main_phase_s": makespan_s, "cpu_s": makespan_s}], **more}


def case(cpu_share=0.5, **runs):
    """Runs of 4 jobs; one alone takes plain Linux 1 s."""
    runs = {name.replace("_", "-"): {1: [ran(1.0)], 4: [run]} for name, run in runs.items()}
    return {"program": "lu", "mpi": "mpich", "transport": "tcp", "cpu_share": cpu_share, "runs": runs}


def bars(made):
    times = {name: wait_report.makespan_s(runs[4]) for name, runs in made["runs"].items()}
    return wait_report.sharing_bars(made, 4, 1.0, times)


class Arms(unittest.TestCase):
    def test_linux_is_always_first(self):
        self.assertEqual(list(arms.parse("auto,linux")), ["linux", "auto"])

    def test_the_library_beside_a_policy(self):
        found = arms.parse("gang-20+preload=spin-block:50us,preload=spin-yield")
        self.assertEqual(found["gang-20+preload=spin-block:50us"],
                         arms.Arm("gang", slot_ms=20, wait="off", preload="spin-block:50us"))
        self.assertEqual(found["preload=spin-yield"], arms.Arm(preload="spin-yield"))

    def test_what_is_unknown_is_named(self):
        for text in ("gangs", "gang+prelude", "gang=3"):
            with self.assertRaisesRegex(live.Failure, f"'{text.replace('+', '.')}' is unknown; there are linux"):
                arms.parse(text)


class Bars(unittest.TestCase):
    def test_all_hold(self):
        found = bars(case(linux=ran(20.0), gang=ran(4.0), local_sb=ran(3.0), auto=ran(3.0)))
        self.assertEqual(found["over_best"], (1.0, False, True))
        self.assertEqual(found["gain"], (20 / 3, False, True))
        self.assertEqual(found["way"], (0.5, False, True))

    def test_all_are_missed(self):
        found = bars(case(linux=ran(9.0), gang=ran(4.0), local_sb=ran(3.0), auto=ran(8.0)))
        self.assertEqual([found[bar][2] for bar in ("over_best", "gain", "way")], [False, False, False])

    def test_a_run_ended_at_the_limit_is_a_bound(self):
        linux = {"makespan_s": 9.0, "past_limit": True}
        found = bars(case(linux=linux, gang=ran(8.0), auto=ran(8.0)))
        self.assertEqual(found["gain"], (9 / 8, True, None))
        self.assertEqual(found["best_arm"], "gang")
        found = bars(case(linux=linux, gang=ran(8.0), auto={"makespan_s": 8.0, "past_limit": True}))
        self.assertEqual(found["over_best"], (1.0, True, None))

    def test_bars_that_do_not_apply(self):
        found = bars(case(cpu_share=0.9, linux=ran(7.0), gang=ran(4.0), auto=ran(6.0)))
        self.assertIsNone(found["gain"][2])
        self.assertEqual(found["way"], (None, False, None))
        self.assertEqual(bars(case(linux=ran(7.0), gang=ran(4.0)))["over_best"], (None, False, None))

    def test_what_failed_is_told_and_has_no_number(self):
        made = case(linux=ran(9.0), gang={"makespan_s": None, "failed": "mpirun: exit code 1:\nno route"},
                    auto=ran(4.0))
        row = wait_report.sharing_rows(made)[1]
        self.assertEqual(row[3:6], ["9.00", "-", "4.00"])
        result = {"sharing": [made], "ranks": [], "alone": []}
        self.assertEqual(wait_report.problems(result), ["lu, mpich, tcp: gang: no route"])
        self.assertIn("    FAILED: lu, mpich, tcp: gang: no route", wait_report.lines(result))


class OtherTables(unittest.TestCase):
    def test_more_ranks(self):
        runs = {"default": [{"makespan_s": 60.0, "past_limit": True}], "yield": [ran(4.0)], "auto": [ran(3.0)]}
        _, rows = wait_report.ranks_rows([{"program": "lu", "mpi": "openmpi", "ranks": 5, "runs": runs}])
        self.assertEqual(rows, [["lu, openmpi", 5, "≥60.00", "4.00", "3.00", "0.75 ok", "≥20.00"]])

    def test_alone(self):
        pingpong = {"program": "pingpong", "mpi": "mpich", "transport": "shm",
                    "runs": {name: [{"jobs": [{"main_phase_s": 1, "latency_us": us, "bandwidth_mb_per_s": 1048.576}]}]
                             for name, us in (("linux", 1.0), ("auto", 1.5))}}
        program = {"program": "lu", "mpi": "mpich", "transport": "shm",
                   "runs": {"linux": [ran(1.0)], "auto": [ran(1.005)]}}
        _, rows = wait_report.alone_rows([pingpong, program])
        self.assertEqual([row[1:] for row in rows], [["latency us", "1.000", "1.500 MISSED"],
                                                     ["us/MiB", "1000.000", "1.000 ok"],
                                                     ["main phase s", "1.000", "1.005 ok"]])


if __name__ == "__main__":
    unittest.main()
