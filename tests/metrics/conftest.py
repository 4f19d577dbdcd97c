from __future__ import annotations

import pytest

from loadstone.metrics import all_metrics
from loadstone.stats import summarise


@pytest.fixture
def result():
    """The result of one metric."""
    return lambda name, tables: all_metrics()[name].result(tables)


@pytest.fixture
def mean(result):
    """The mean of one distribution, or the value of a number."""

    def of(name, tables):
        found = result(name, tables)
        return found.value if hasattr(found, "value") else summarise(found.values).mean

    return of


@pytest.fixture
def reason(result):
    """Why a metric is missing."""
    return lambda name, tables: result(name, tables).reason
