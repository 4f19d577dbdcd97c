"""Which values of a logarithmic axis are labelled."""

from __future__ import annotations

from loadstone.plot._log_axis import labels


def test_round_values_and_the_end():
    assert labels(132, 9150) == [200, 500, 1000, 2000, 5000, 9150]
    assert labels(100, 1050) == [100, 200, 500, 1050]


def test_what_is_asked_for_comes_before_what_lies_beside_it():
    assert labels(10, 250, [52, 300]) == [10, 20, 52, 100, 200, 250]


def test_a_short_axis_has_labels_as_well():
    assert labels(26, 40) == [27.5, 32.5, 40]
    assert labels(25, 90) == [30, 40, 50, 60, 90]
