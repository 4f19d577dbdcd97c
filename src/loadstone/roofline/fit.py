"""Fits how near steps come to the datasheet to steps that were measured.

The time of a step is linear, piece by piece, in theta = (1 / bandwidth, 1 / compute, layer_s, sequence_s, 1 / link); the time
to a first token has on top what a request takes beside its prompt. So Gauss-Newton steps whose linear problem is solved
exactly within bounds come to the optimum in a few rounds. Residuals are relative; points of few steps count less, and so do
far ones (Huber, "Robust estimation of a location parameter", 1964). What the points cannot tell apart keeps its prior, with
the reason. Knows neither runs nor files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import product
from typing import Literal, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from loadstone.roofline.setup import Efficiency
from loadstone.roofline.work import Work

Floats = NDArray[np.float64]
Model = Callable[[Efficiency, Work], float]
"""The duration of a step in seconds, unrounded."""

NAMES = ("bandwidth", "compute", "layer_s", "sequence_s", "link", "request_s")
"""Those of `Efficiency`, and `request_s`: what a first token takes beside the step of its prompt (HTTP, tokenizing)."""
INVERSE = (True, True, False, False, True, False)
"""Theta holds 1 / value."""
REQUEST = NAMES.index("request_s")
SACRIFICED = ("request_s", "sequence_s", "link", "layer_s", "compute", "bandwidth")
"""Of several that the points cannot tell apart, which keeps its prior first: the one that matters least elsewhere."""
FAINT = 0.003
"""A parameter with less than this share of the steps' times (root mean square) has no say in them; what a request takes
beside its prompt may be nothing."""
ALIKE = 0.02
"""Smallest singular value of columns of length 1 from which on they are told apart: 1 % of noise becomes 50 % else."""
WORSE = 10.0
"""By so many squares of the scatter the points may be described worse with a prior that is kept: 3.2 standard deviations."""
LEAST_SCATTER = 1e-3
"""Nothing is measured better, relative."""
PART = 0.05
"""A parameter with less than this share of a direction that cannot be told is not meant by it."""
HUBER = 1.345
"""Standard deviations from which on a residual counts less; 95 % as efficient as least squares where noise is normal."""
MOST_COUNTED = 32
"""Steps from which on a point counts in full. Fewer count less, as the error of their median; more do not help, since it is
then the model that is off."""
ONE_MODEL = "In runs of one model it cannot be told from layer_s."
ROUNDS = 12
STEPS = 40
GO_ON = 2
"""Of all starts, how many are followed to the end: those that have come furthest."""
LEAST_SCALE = 1e-5
"""Residuals below this (relative) are rounding, none of them an outlier."""


class Point(NamedTuple):
    """A step, or several alike, as measured."""

    kind: Literal["decode", "prefill"]
    work: Work
    seconds: float
    """Its duration: the median where there were several."""
    samples: int
    """Of so many steps, or of so many prompts."""
    sequences: int
    tokens: int
    """Mean context of its sequences for a decode, tokens of the prompt for a prefill."""
    source: str
    """The run that it is from."""


class Bounds(NamedTuple):
    """Between what the parameters may lie."""

    bandwidth: tuple[float, float] = (0.02, 1.0)
    compute: tuple[float, float] = (0.02, 1.0)
    layer_s: tuple[float, float] = (0.0, 0.1)
    sequence_s: tuple[float, float] = (0.0, 0.1)
    link: tuple[float, float] = (0.02, 1.0)
    request_s: tuple[float, float] = (0.0, 10.0)


UNKNOWN_HARDWARE = Bounds(bandwidth=(1e-4, 1e4), compute=(1e-4, 1e4))
"""Where nothing is known of the hardware: the shares are of placeholders, and say what is reached by multiplication."""


class Estimate(NamedTuple):
    """One parameter. `value` is None where the points do not tell it; then `used` stands in, and `reason` says why."""

    name: str
    value: float | None
    error: float | None
    """Its standard error, as if the model were right; None: not told, on a bound, or no points to spare."""
    prior: float
    used: float
    """The value, or what stands in: the prior, or the least that the points allow."""
    reason: str | None = None


class Residual(NamedTuple):
    """What the model says of a point."""

    point: Point
    model_s: float

    @property
    def error(self) -> float:
        """(model - measured) / measured."""
        return self.model_s / self.point.seconds - 1


class Fit(NamedTuple):
    """The result: an efficiency to use, and what is known of each of its parts."""

    efficiency: Efficiency
    estimates: tuple[Estimate, ...]
    residuals: tuple[Residual, ...]

    @property
    def rms(self) -> float:
        """Root mean square of the relative errors."""
        return float(np.sqrt(np.mean([one.error**2 for one in self.residuals])))

    @property
    def worst(self) -> float:
        """The greatest relative error, without its sign."""
        return max(abs(one.error) for one in self.residuals)


def fit(
    points: Sequence[Point], model: Model, prior: Efficiency | None = None, bounds: Bounds | None = None
) -> Fit:
    """The efficiency with which `model` comes nearest to the points. Raises `ValueError` without points."""
    if not points:
        raise ValueError("a fit needs points.")
    problem = _Problem(points, model, prior or Efficiency(), bounds or Bounds())
    kept = problem.without_effect()
    theta = problem.solved(problem.starts(), [one not in kept for one in NAMES])
    while found := problem.silent(theta, kept):
        name, kept[name] = found
        at = NAMES.index(name)
        if kept[name] == _NO_SAY[name] and not problem.same_with_prior(theta, at):
            kept[name] += f" It is {_value(theta, at):.2g} or {'more' if INVERSE[at] else 'less'}."
        else:
            theta[at] = problem.prior[at]
        theta = problem.solved([theta], [one not in kept for one in NAMES])
    while without := next(problem.alike(theta, kept), None):
        theta, name, kept[name] = without
    return problem.result(theta, kept)


_NO_SAY = {
    "bandwidth": "No measured step was bound by the memory's bandwidth.",
    "compute": "No measured step was bound by compute.",
    "layer_s": "It is too small a part of the measured steps.",
    "sequence_s": "It is too small a part of the measured steps.",
    "link": "No measured step waited for links.",
    "request_s": "No prompt came alone.",
}


class _Problem:
    """Points, model and bounds in theta."""

    def __init__(self, points: Sequence[Point], model: Model, prior: Efficiency, bounds: Bounds) -> None:
        self.points = points
        self.model = model
        self.base = prior
        self.measured = np.array([point.seconds for point in points])
        self.first = np.array([float(point.kind == "prefill") for point in points])
        self.counted = np.sqrt(np.minimum([point.samples for point in points], MOST_COUNTED) / MOST_COUNTED)
        """By what the residual of each point is multiplied."""
        self.prior = np.array(
            [1 / v if inverse else v for v, inverse in zip(_of(prior), INVERSE, strict=True)]
        )
        pairs = [
            (1 / high, 1 / low) if inverse else (low, high)
            for (low, high), inverse in zip(bounds, INVERSE, strict=True)
        ]
        self.low, self.high = np.array(pairs).T
        typical = float(np.median(self.measured))
        self.scale = np.array([self.prior[0], self.prior[1], typical, typical, self.prior[4], typical])
        """A step of differences, and the unit of columns, for each parameter."""

    def predicted(self, theta: Floats) -> Floats:
        """The model's relative times: 1 is what was measured."""
        efficiency = _efficiency(theta, self.base)
        steps = np.array([self.model(efficiency, point.work) for point in self.points])
        found: Floats = (steps + self.first * theta[REQUEST]) / self.measured
        return found

    def residuals(self, theta: Floats) -> Floats:
        """The relative errors, each by as much as it counts."""
        found: Floats = (self.predicted(theta) - 1) * self.counted
        return found

    def without_effect(self) -> dict[str, str]:
        """The parameters that no point depends on at all, and why."""
        at = self.predicted(self.prior)
        moved = self.jacobian(self.prior, at, range(len(NAMES)))
        return {
            name: _NO_SAY[name]
            for j, name in enumerate(NAMES)
            if name in ("link", "request_s") and not moved[:, j].any()
        }

    def jacobian(self, theta: Floats, at: Floats, free: Iterable[int], way: int = 1) -> Floats:
        """Derivatives of `predicted`, whose value at theta is `at`, by those that are free; exact within a piece.

        At the edge of one they are of the piece above (way 1) or below (way -1).
        """
        columns = np.zeros((len(NAMES), len(at)))
        for j in free:
            step = way * 1e-5 * max(theta[j], self.scale[j] * 1e-3)
            moved = theta.copy()
            moved[j] += step if moved[j] + step >= 0 else -step
            columns[j] = (self.predicted(moved) - at) / (moved[j] - theta[j])
        return columns.T

    def starts(self) -> list[Floats]:
        """Where to begin: the prior, and mixtures of what may take the time, the bounds' whole range over."""
        found = [np.clip(self.prior, self.low, self.high)]
        ranges = [np.geomspace(self.low[j], self.high[j], 5)[1:-1] for j in (0, 1)]
        for a, c in product(*ranges):
            found.append(np.array([a, c, 0.0, 0.0, self.prior[4], 0.0]))
        return found

    def solved(self, starts: Sequence[Floats], free: Sequence[bool]) -> Floats:
        """The best theta that is come to from one of the starts; what is not free stays."""
        chosen = np.array(free)
        if not chosen.any():
            return starts[0]
        begun = [self._solved(start.copy(), chosen, 1) for start in starts]
        begun.sort(key=lambda theta: self.loss(theta, LEAST_SCALE))
        best = self._best([self._solved(theta, chosen) for theta in begun[:GO_ON]])
        for _ in range(ROUNDS):
            nearby = [best, *(self._solved(start, chosen) for start in self._around(best, free))]
            found = self._best(nearby)
            if self.loss(found, LEAST_SCALE) >= self.loss(best, LEAST_SCALE) * (1 - 1e-6):
                break
            best = found
        return best

    def _best(self, found: Sequence[Floats]) -> Floats:
        return min(found, key=lambda theta: self.loss(theta, LEAST_SCALE))

    def _around(self, theta: Floats, free: Sequence[bool]) -> list[Floats]:
        """Other starts near a solution: it may be one of the pieces alone."""
        found = []
        for j, factor in product((0, 1), (0.7, 1.4)):
            if free[j]:
                moved = theta.copy()
                moved[j] *= factor
                found.append(np.clip(moved, self.low, self.high))
        return found

    def _solved(self, theta: Floats, free: NDArray[np.bool_], rounds: int = ROUNDS) -> Floats:
        for _ in range(rounds):
            spread = self.spread(theta)
            before = theta.copy()
            theta = self._descended(theta, free, spread)
            if np.allclose(theta, before, rtol=1e-7, atol=1e-15):
                break
        return theta

    def _descended(self, theta: Floats, free: NDArray[np.bool_], spread: float) -> Floats:
        """Gauss-Newton under one scale of residuals; a step that does not help is halved."""
        for _ in range(STEPS):
            at = self.predicted(theta)
            weights = _weights((at - 1) * self.counted, spread) * self.counted**2
            loss = _huber((at - 1) * self.counted, spread)
            for way in (1, -1):
                tangent = self.jacobian(theta, at, np.flatnonzero(free), way)
                target = _bounded(tangent, at, theta, weights, free, self.low, self.high, self.scale)
                tried = self._nearer(theta, target, loss, spread)
                if tried is not None:
                    break
            else:
                return theta
            theta = tried
        return theta

    def _nearer(self, theta: Floats, target: Floats, loss: float, spread: float) -> Floats | None:
        """The longest of ever shorter steps to the target that helps; None when none does."""
        share = 1.0
        while share > 1e-3:
            tried = theta + share * (target - theta)
            if self.loss(tried, spread) < loss * (1 - 1e-9):
                return tried
            share /= 2
        return None

    def loss(self, theta: Floats, spread: float) -> float:
        return _huber(self.residuals(theta), spread)

    def spread(self, theta: Floats) -> float:
        """The scale of residuals: from their median size, as if they were normal."""
        return max(1.4826 * float(np.median(np.abs(self.residuals(theta)))), LEAST_SCALE)

    def silent(self, theta: Floats, kept: dict[str, str]) -> tuple[str, str] | None:
        """A parameter of which the points say nothing, and why; None when they say something of all that are left."""
        free = _left(kept)
        at = self._slopes(theta, free)
        for name in free:
            j = NAMES.index(name)
            reach = max(theta[j], self.prior[j])
            if j != REQUEST and np.sqrt(np.mean((at[name] * reach) ** 2)) < FAINT:
                return name, _NO_SAY[name]
        if len(self.points) < len(free):
            return free[0], f"There are only {len(self.points)} points for {len(free)} unknowns."
        return None

    def alike(self, theta: Floats, kept: dict[str, str]) -> Iterator[tuple[Floats, str, str]]:
        """Parameters that the points do not tell from others, with the best of theta with the prior in their place, and why.

        Not those with whose prior the points are described worse than their scatter allows: so much the points do tell.
        """
        free = _left(kept)
        if len(free) < 2:
            return
        at = self._slopes(theta, free)
        counted = {name: at[name] * self.counted for name in free}
        columns = np.array([counted[name] / np.linalg.norm(counted[name]) for name in free]).T
        _, sizes, directions = np.linalg.svd(columns, full_matrices=False)
        if sizes[-1] >= ALIKE:
            return
        meant = [name for name, part in zip(free, directions[-1], strict=True) if abs(part) > PART]
        scatter = max(self.spread(theta), LEAST_SCATTER)
        for name in meant:
            moved = theta.copy()
            moved[NAMES.index(name)] = self.prior[NAMES.index(name)]
            moved = self.solved([moved], [one in free and one != name for one in NAMES])
            if self.loss(moved, scatter) - self.loss(theta, scatter) < WORSE * scatter**2:
                others = " and ".join(one for one in NAMES if one in meant and one != name)
                few = "prompts that came alone" if name == "request_s" else "batches and contexts"
                yield moved, name, f"The measured steps do not tell it from {others}: {few} vary too little."

    def _slopes(self, theta: Floats, free: Sequence[str]) -> dict[str, Floats]:
        """The derivatives by each that is free; where two pieces meet, those of the flatter one."""
        now, places = self.predicted(theta), [NAMES.index(name) for name in free]
        above, below = (self.jacobian(theta, now, places, way) for way in (1, -1))
        flatter = np.where(np.abs(above) < np.abs(below), above, below)
        return {name: flatter[:, NAMES.index(name)] for name in free}

    def same_with_prior(self, theta: Floats, j: int) -> bool:
        """Whether nothing that was measured would change with the prior in place of this parameter."""
        moved = theta.copy()
        moved[j] = self.prior[j]
        return bool(np.allclose(self.predicted(moved), self.predicted(theta), rtol=FAINT))

    def result(self, theta: Floats, kept: dict[str, str]) -> Fit:
        errors = self.errors(theta, kept)
        estimates = []
        for j, name in enumerate(NAMES):
            used, prior = _value(theta, j), _value(self.prior, j)
            estimates.append(
                Estimate(name, None, None, prior, used, kept[name])
                if name in kept
                else Estimate(name, used, errors[j], prior, used, self.on_bound(theta, j))
            )
        for name in ("latency", "step_s"):
            prior = getattr(self.base, name)
            estimates.append(Estimate(name, None, None, prior, prior, ONE_MODEL))
        efficiency = _efficiency(theta, self.base)
        times = self.predicted(theta) * self.measured
        residuals = [Residual(point, float(time)) for point, time in zip(self.points, times, strict=True)]
        return Fit(efficiency, tuple(estimates), tuple(residuals))

    def on_bound(self, theta: Floats, j: int) -> str | None:
        if theta[j] == 0.0:
            return "It cannot be less."
        if theta[j] in (self.low[j], self.high[j]):
            return "It lies on the bound of what was allowed."
        return None

    def errors(self, theta: Floats, kept: dict[str, str]) -> list[float | None]:
        """Standard errors of the values, from the curvature and the residuals."""
        at = self.predicted(theta)
        free = [
            j for j, name in enumerate(NAMES) if name not in kept and self.low[j] < theta[j] < self.high[j]
        ]
        spare = len(self.points) - len(free)
        found: list[float | None] = [None] * len(NAMES)
        if not free or spare < 1:
            return found
        columns = self.jacobian(theta, at, free)[:, free] * self.scale[free] * self.counted[:, None]
        variance = float(np.sum(self.residuals(theta) ** 2)) / spare
        covariance = variance * np.linalg.pinv(columns.T @ columns)
        for place, j in enumerate(free):
            error = float(np.sqrt(covariance[place, place]) * self.scale[j])
            found[j] = error / float(theta[j]) ** 2 if INVERSE[j] else error
        return found


def _bounded(
    jacobian: Floats,
    at: Floats,
    theta: Floats,
    weights: Floats,
    free: NDArray[np.bool_],
    low: Floats,
    high: Floats,
    scale: Floats,
) -> Floats:
    """The theta within bounds at which the tangent comes nearest to 1.

    From the bounds that are broken, and those from which the slope leads back, the next guess which of them hold, until none
    changes (Hintermüller, Ito and Kunisch, SIAM J. Optim. 13 (2002) 865); where that goes in circles all are tried. Where
    the tangent does not move with a direction, theta is left where it is in it (the shortest step).
    """
    root = np.sqrt(weights)[:, None]
    columns = jacobian * root * scale
    wanted = ((1 - at) + jacobian @ theta) * root[:, 0]

    def held(states: Sequence[int]) -> Floats:
        """The nearest where these lie on their lower (1) or upper (2) bound, and the others (0) anywhere."""
        found = theta.copy()
        inner = [j for j in range(len(theta)) if free[j] and states[j] == 0]
        for j in range(len(theta)):
            if free[j] and states[j]:
                found[j] = low[j] if states[j] == 1 else high[j]
        if inner:
            rest = wanted - columns @ (found / scale)
            step = np.linalg.lstsq(columns[:, inner], rest, rcond=1e-10)[0]
            found[inner] += step * scale[inner]
        return found

    least_low, most_high = low - 1e-15, high + 1e-12 * np.abs(high)
    states = [0] * len(theta)
    for _ in range(ROUNDS):
        found = held(states)
        slope = columns.T @ (columns @ (found / scale) - wanted)
        changed = [
            (1 if found[j] < least_low[j] else 2 if found[j] > most_high[j] else 0)
            if state == 0
            else (state if (slope[j] > 0) == (state == 1) else 0)
            for j, state in enumerate(states)
        ]
        changed = [state if may else 0 for state, may in zip(changed, free, strict=True)]
        if changed == states:
            return np.clip(found, low, high)
        states = changed
    best, least = theta, np.inf
    for every in product(*(range(3) if may else range(1) for may in free)):
        found = held(every)
        if (found < least_low).any() or (found > most_high).any():
            continue
        found = np.clip(found, low, high)
        loss = float(np.sum((columns @ (found / scale) - wanted) ** 2))
        if loss < least - 1e-18:
            best, least = found, loss
    return best


def _left(kept: Collection[str]) -> list[str]:
    """The parameters that are still free, those first that matter least elsewhere."""
    return [name for name in SACRIFICED if name not in kept]


def _weights(residuals: Floats, spread: float) -> Floats:
    """How much a residual counts."""
    sizes = np.abs(residuals) / (HUBER * spread)
    return 1 / np.maximum(sizes, 1.0)


def _huber(residuals: Floats, spread: float) -> float:
    """The sum that is to be small: squares near 0, lines beyond."""
    far = HUBER * spread
    sizes = np.abs(residuals)
    return float(np.sum(np.where(sizes <= far, sizes**2, 2 * far * sizes - far**2)))


def _of(efficiency: Efficiency) -> tuple[float, ...]:
    """The parameters, in order; of a request no prior is known, so that it is taken to take nothing."""
    return tuple(getattr(efficiency, name, 0.0) for name in NAMES)


def _value(theta: Floats, j: int) -> float:
    return float(1 / theta[j] if INVERSE[j] else theta[j])


def _efficiency(theta: Floats, base: Efficiency) -> Efficiency:
    values = {name: _value(theta, j) for j, name in enumerate(NAMES) if j != REQUEST}
    return replace(base, **values)
