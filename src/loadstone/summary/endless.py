"""A distribution in which some samples are infinite: requests that failed and so took for ever.

One rule: what is infinite is named, and never passed over as missing.
"""

from __future__ import annotations

import math
from typing import TypeGuard

import numpy as np
from msgspec.structs import replace

from loadstone.histogram import Histogram
from loadstone.report import MetricResult
from loadstone.stats import PERCENTILES, Floats, Weighted, thin

ROUNDING = 1e-9
"""0.07 * 100 is a hair above 7 in binary."""


def endless(samples: Floats | Weighted | Histogram) -> TypeGuard[Floats]:
    """Whether the largest of some samples is infinite, and each is a number above minus infinity."""
    if isinstance(samples, Histogram) or np.iscomplexobj(samples) or not len(samples):
        return False
    return bool(samples.max() == np.inf and samples.min() > -np.inf)


def with_infinity(empty: MetricResult, values: Floats) -> MetricResult:
    """The numbers of samples of which at least one is infinite; sorts them in place.

    Percentile q is the sample of rank ceil(q n) (nearest rank): between a sample and infinity there is nothing to be read.
    With one infinite sample the mean is infinite, and so is the distance from it.
    """
    values.sort()
    count = len(values)
    ranks = {name: max(math.ceil(q * count - ROUNDING), 1) for name, q in PERCENTILES.items()}
    found = {name: float(values[rank - 1]) for name, rank in ranks.items()}
    found |= {"mean": math.inf, "min": float(values[0]), "max": math.inf, "std": math.inf}
    order = [name for name in ("mean", "min", "max", "std", *PERCENTILES) if math.isinf(found[name])]
    told = {name: value for name, value in found.items() if math.isfinite(value)}
    return replace(empty, count=count, thin=thin(count), infinite=tuple(order), **told)
