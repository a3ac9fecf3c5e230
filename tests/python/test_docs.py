"""Examples in docstrings and in docs/python.md do what they say, every module is covered, and the stubs know every name."""
import ast
import doctest
import importlib
import pathlib
import pkgutil
import unittest

import cautious
import cautious.torch
from cautious import _core

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


class Docs(unittest.TestCase):
    def test_docstrings(self):
        ran = 0
        for package in (cautious, cautious.torch):
            for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
                if found.name.endswith("._core"):
                    continue
                module = importlib.import_module(found.name)
                failed, count = doctest.testmod(module, optionflags=FLAGS)
                self.assertEqual(failed, 0, found.name)
                self.assertTrue(module.__doc__, found.name)
                ran += count
            ran += doctest.testmod(package, optionflags=FLAGS).attempted
        self.assertGreater(ran, 30)

    def test_page(self):
        failed, count = doctest.testfile(str(ROOT / "docs/python.md"), module_relative=False, optionflags=FLAGS)
        self.assertEqual(failed, 0)
        self.assertGreater(count, 10)

    def test_public_names_have_docstrings(self):
        for package in (cautious, cautious.torch):
            for name in package.__all__:
                self.assertTrue(getattr(package, name).__doc__, name)

    def test_stubs(self):
        """What the module has, its stub has, and nothing else."""
        tree = ast.parse((ROOT / "python/cautious/_core.pyi").read_text())
        stub = {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        values = {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
        here = {name for name in dir(_core) if not name.startswith("__")} | {"__version__"}
        self.assertEqual(set(stub) | values, here)
        for name, node in stub.items():
            if isinstance(node, ast.ClassDef):
                methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
                methods |= {each.target.id for each in node.body if isinstance(each, ast.AnnAssign)}
                mine = {each for each in dir(getattr(_core, name)) if not each.startswith("_")}
                self.assertEqual({each for each in methods if not each.startswith("_")}, mine, name)


if __name__ == "__main__":
    unittest.main()
