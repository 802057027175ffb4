"""The model and advice, through the command."""

import os
import pathlib
import shutil
import tempfile
import unittest
from unittest import mock

import cosched
from cosched import model
from support import needs_daemon


@unittest.skipUnless(os.environ.get("COSCHED_COMMAND"), "no command is named in COSCHED_COMMAND")
class Model(unittest.TestCase):
    def test_a_program_by_two_numbers(self):
        prediction = model.predict(t1_s=60, cpu_share=0.26, jobs=[2, 8])
        # t_j = max(t_1, j times the CPU time of one job), section 5.
        self.assertEqual((prediction.time_s, prediction.slowdown(2), prediction.slowdown(2, "gang")), (60, 1, 2))
        self.assertAlmostEqual(prediction.slowdown(8), 8 * 0.26)
        with self.assertRaises(KeyError):
            prediction.slowdown(3)

    def test_a_program_of_the_paper(self):
        self.assertIn("bunyip", model.machines())
        prediction = model.predict(machine="bunyip", program="lu", n=6000, grid=(8, 4), jobs=[2, 4])
        self.assertAlmostEqual(sum(term["time_s"] for term in prediction.details["terms"]), prediction.time_s)

    def test_what_it_refuses(self):
        for wrong in ({"t1_s": 60}, {"t1_s": -1, "cpu_share": 0.5}, {"machine": "nowhere", "program": "lu", "n": 10, "grid": (1, 1)}):
            with self.assertRaises(cosched.CoschedError) as refused:
                model.predict(**wrong)
            self.assertTrue(refused.exception.what)
            self.assertNotIn("Usage", str(refused.exception))

    def test_three_lives_side_by_side(self):
        programs = os.environ.get("COSCHED_PROGRAMS", pathlib.Path(__file__).parents[2] / "build/programs")
        if not (pathlib.Path(programs) / "pingpong").exists() or shutil.which("mpirun.openmpi") is None:
            self.skipTest("no programs of MPI (make programs), or no Open MPI")
        mpi = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "COSCHED_PROGRAMS": str(programs)}
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, mpi):
            machine, profile, measured = (pathlib.Path(folder, name) for name in ("here.toml", "lu.json", "lu"))
            constants = model.calibrate(machine, repeat=1, name="here", matmul_n=100)
            self.assertEqual(constants["name"], "here")
            lu = ["mpirun.openmpi", "-n", "2", "--oversubscribe", f"{programs}/lu", "--n", "300"]
            recorded = model.record(lu, profile)
            self.assertEqual(recorded["tasks"], 2)
            done = model.measure(lu, measured, jobs=[1, 2], policies=["linux"], repeat=1)
            self.assertTrue((measured / "report.html").exists())
            rows = model.compare(measured, profile=profile, machine=machine)
            two = next(row for row in rows if row.jobs == 2)
            self.assertGreater(min(two.measured, two.model, two.simulated), 0)
            self.assertAlmostEqual(two.model_difference, (two.model - two.measured) / two.measured)
            self.assertTrue(done["results"])
            with self.assertRaisesRegex(cosched.CoschedError, "nowhere"):
                model.compare(measured, profile=profile, machine="nowhere")
        with self.assertRaises(cosched.CoschedError):
            model.record(["false"], os.devnull)

    @needs_daemon
    def test_advice(self):
        program = ["sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"]
        advice = cosched.advise(program, seconds=3, policies=["local"])
        self.assertIn(advice.choice, ("linux", "local"))
        self.assertEqual(advice.details["command"], program)
        self.assertGreater(advice.facts["alone_s"], 0)
        with self.assertRaises(cosched.CoschedError):
            cosched.advise(["false"], seconds=3)


if __name__ == "__main__":
    unittest.main()
