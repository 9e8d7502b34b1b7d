"""The examples in the docstrings of the metrics formats are true."""

import doctest
import importlib
import pkgutil

import pytest

from parsers import prometheus

MODULES = sorted(module.name for module in pkgutil.iter_modules(prometheus.__path__))


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(f"parsers.prometheus.{name}")
    assert doctest.testmod(module).failed == 0
