"""The notebooks of docs/notebooks, executed as Jupyter does it, on small examples."""

import importlib.util
import os
import pathlib
import tempfile
import unittest

NOTEBOOKS = pathlib.Path(__file__).parents[2] / "docs/notebooks"
MISSING = [name for name in ("ipykernel", "matplotlib", "nbclient") if not importlib.util.find_spec(name)]


def read(name):
    import nbformat

    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    nbformat.validate(notebook)
    return notebook


@unittest.skipIf(MISSING, f"{', '.join(MISSING)}: not installed (python/requirements-test.txt)")
@unittest.skipUnless(NOTEBOOKS.is_dir(), "not in a checkout")
class Notebooks(unittest.TestCase):
    def lines(self, name, pictures=1, **small):
        """What it prints; its parameters are those given here."""
        import nbclient
        from traitlets.config import Config

        notebook = read(name)
        if small:
            (parameters,) = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
            self.assertLessEqual(small.keys(), set(parameters.source.split(" = ")[0].split(", ")))
            parameters.source += "".join(f"\n{key} = {value!r}" for key, value in small.items())
        with tempfile.TemporaryDirectory() as folder:
            own = {key: folder for key in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "MPLCONFIGDIR")}
            environment = {key: value for key, value in os.environ.items() if key != "MPLBACKEND"} | own
            # No port of the machine is opened.
            config = Config(KernelManager={"transport": "ipc", "ip": f"{folder}/kernel", "connection_file": f"{folder}/kernel.json"})
            nbclient.NotebookClient(notebook, timeout=200, config=config, resources={"metadata": {"path": folder}}).execute(env=environment)
        outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
        self.assertEqual([output.text for output in outputs if output.get("name") == "stderr"], [])
        self.assertEqual(sum("image/png" in output.get("data", {}) for output in outputs), pictures)
        return "".join(output.text for output in outputs if output.get("name") == "stdout").splitlines()

    def test_all_are_tested_and_kept_without_outputs(self):
        names = {file.name for file in NOTEBOOKS.iterdir()}
        self.assertEqual(names, {"figure3.ipynb", "own_strategy.ipynb", "own_trace.ipynb", "what_if.ipynb"})
        for name in names:
            for cell in read(name).cells:
                self.assertEqual((cell.get("outputs", []), cell.get("execution_count")), ([], None), name)

    def test_figure_3(self):
        self.assertEqual(len(self.lines("figure3.ipynb", JOBS=6, SEEDS=1, MEAN_S=0.02)), 20)

    def test_own_trace(self):
        with tempfile.NamedTemporaryFile("w", suffix=".swf") as trace:
            trace.write("".join(f"{n} {n} 0 1 {size} -1 -1 {size} -1 -1 1 1 1 1 1 1 -1 -1\n" for n, size in [(1, 4), (2, 64), (3, 8)]))
            trace.flush()
            lines = self.lines("own_trace.ipynb", SEEDS=1, TRACE=trace.name)
        self.assertRegex(lines[0], r"^2 jobs of .*\.swf; left out: {'larger than the machine': 1}$")
        self.assertEqual([line.split()[0] for line in lines[1:]], ["FCFS", "EASY", "GS", "Local", "SB", "PB-SB"])

    @unittest.skipUnless(os.environ.get("COSCHED_COMMAND"), "no command is named in COSCHED_COMMAND")
    def test_what_if(self):
        lines = self.lines("what_if.ipynb")
        self.assertEqual(len(lines), 12 + 5 + 3)
        self.assertIn("4 solvers: slowdown 1.60", lines[-1])

    def test_own_strategy(self):
        lines = self.lines("own_strategy.ipynb", JOBS=6, MEAN_S=0.02)
        self.assertEqual([line.split()[0] for line in lines], ["GS", "ShortFirst", "Local", "SB", "SpinIfAlone"])


if __name__ == "__main__":
    unittest.main()
