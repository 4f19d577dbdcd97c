"""The time of one engine step: bytes against bandwidth and FLOPs against peak, group by group of matrices.

A group is what has one ratio of FLOPs to bytes: matrices that every token goes through, routed experts, the output matrix,
attention to all tokens, attention to a window. Each takes the longer of its two times; groups, links and overhead follow
each other. Knows no requests, and nothing of caches, kernels or power caps but what `Efficiency` says.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from msgspec.structs import replace

from loadstone.errors import UsageError
from loadstone.roofline import weights as counts
from loadstone.roofline.communication import layers_s, logits_s
from loadstone.roofline.gpu import Compute, Gpu
from loadstone.roofline.setup import Efficiency, Parallel, Precision, Weights
from loadstone.roofline.shape import Shape
from loadstone.roofline.work import Work

Bound = Literal["weights", "kv", "compute", "communication", "overhead"]
VECTORISED = 24
"""Steps from which on numpy is faster than a loop."""

ARITHMETIC: dict[Weights, tuple[Compute, ...]] = {
    "fp32": ("fp32",),
    "bf16": ("bf16", "fp32"),
    "fp8": ("fp8", "bf16", "fp32"),
    "int8": ("int8", "bf16", "fp32"),
    "w8a16": ("bf16", "fp32"),
    "int4": ("bf16", "fp32"),
    "mxfp4": ("bf16", "fp32"),
    "fp4": ("fp4", "bf16", "fp32"),
    "nvfp4a16": ("bf16", "fp32"),
}
"""In which arithmetic weights of a type are multiplied: the first that the hardware has.

What is quantized in its weights alone is unpacked to bf16 in the kernel (W4A16, W8A16: Marlin, and Triton's for gpt-oss).
"""


def arithmetic(gpu: Gpu, weights: Weights) -> Compute:
    """The arithmetic in which this device multiplies weights of this type. UsageError: it has none that does."""
    for compute in ARITHMETIC[weights]:
        if compute in gpu.flops:
            return compute
    raise UsageError(f"{gpu.name} has no arithmetic for {weights} weights. It has: {', '.join(gpu.flops)}.")


def check_split(shape: Shape, parallel: Parallel) -> None:
    """UsageError when a model cannot be split in this way, which vLLM refuses too."""
    tensor = parallel.tensor
    if shape.heads % tensor:
        fits = ", ".join(str(n) for n in range(1, shape.heads + 1) if shape.heads % n == 0)
        raise UsageError(
            f"--tensor-parallel-size {tensor}: {shape.name} has {shape.heads} heads, which so many devices cannot share"
            f" evenly. It can be {fits}."
        )
    if max(shape.kv_heads, tensor) % min(shape.kv_heads, tensor):
        raise UsageError(
            f"--tensor-parallel-size {tensor}: {shape.name} has {shape.kv_heads} KV heads, of which one device cannot have"
            " a whole number. Use a divisor or a multiple of them."
        )
    if parallel.pipeline > shape.layers:
        raise UsageError(
            f"--pipeline-parallel-size {parallel.pipeline}: {shape.name} has only {shape.layers} layers. Use fewer stages."
        )
    if parallel.data > 1 and not (parallel.expert and shape.experts):
        raise UsageError(
            f"{shape.name}: {parallel.data} data-parallel replicas that share no experts are engines of their own. Model"
            " one of them, or use --enable-expert-parallel with a model that has experts."
        )


class Parts(NamedTuple):
    """Where the time of a step goes, in seconds. Memory and compute overlap, so their sum is more than the total."""

    linear_memory: float
    """Streaming weights."""
    linear_compute: float
    """Products with weights."""
    attention_memory: float
    """Reading the KV cache."""
    attention_compute: float
    """Products of attention."""
    communication: float
    """Links between devices."""
    overhead: float
    """Launches, scheduling, sampling."""
    total: float
    """The longer of each group's two times, links and overhead."""
    bound: Bound
    """What most of the total is spent on."""


class Rates(NamedTuple):
    """What decoding costs, each by itself: seconds that a whole step or one sequence of it takes."""

    weights_s: float
    """Streaming all weights, every expert too."""
    token_s: float
    """Products with weights, for one sequence."""
    sequence_s: float
    """What else each sequence adds: its tokens on links, sampling."""
    full_kv_s: float
    """Reading one token of context in the layers that attend to all of it."""
    window_kv_s: float
    """The same in windowed layers."""
    pairs: float
    """Products of attention to a token / reading it; above 1 attention is bound by compute, as latent attention can be."""
    window: int

    def attention_s(self, context: int) -> float:
        """Attention of one sequence: reading its KV cache, or its products where they take longer."""
        read = context * self.full_kv_s + min(context, self.window) * self.window_kv_s
        return read * max(1.0, self.pairs)

    def most_tokens_s(self, context: int) -> float:
        """Tokens/s to which one engine comes as its batch grows, and which no batch exceeds."""
        return 1 / (self.token_s + self.attention_s(context) + self.sequence_s)

    def s_crit(self) -> float:
        """The context whose KV cache takes as long to read as the products of its token; infinite: there is none."""
        if self.pairs > 1:
            return float("inf")
        within = self.token_s / (self.full_kv_s + self.window_kv_s)
        if not self.window_kv_s or within <= self.window:
            return within
        left = self.token_s - self.window * self.window_kv_s
        return left / self.full_kv_s if self.full_kv_s else float("inf")


class Roofline:
    """A `StepCost` from the shape of a model and the datasheet of a device.

    With pipeline stages the running sequences go through them in as many micro-batches: a token of each is computed
    while weights pass once through every stage, and KV cache and FLOPs of the batch are shared by the stages.

    With `data` > 1 a step's work is that of one replica of attention. Its experts serve the tokens of all of them, of which
    a step knows nothing: `others` says how many each other replica has for each one here. 1, all are equally busy: so the
    engine is simulated. 0, they are idle: the floor of what this replica was seen to do.

    UsageError: the model cannot be split so, or nothing is known of links that are needed.
    """

    window: int | None

    def __init__(
        self,
        shape: Shape,
        gpu: Gpu,
        precision: Precision,
        parallel: Parallel | None = None,
        efficiency: Efficiency | None = None,
        *,
        others: float = 1.0,
    ) -> None:
        self.shape = shape
        self.gpu = gpu
        self.precision = precision
        self.parallel = parallel = parallel or Parallel()
        self.efficiency = efficiency = efficiency or Efficiency()
        check_split(shape, parallel)
        self.window = shape.window if shape.windowed_layers else None
        self._weights = counts.parts(shape, precision.weights, parallel)
        self._bandwidth = gpu.bandwidth * efficiency.bandwidth
        self._plain: Weights = "fp32" if precision.weights == "fp32" else "bf16"
        self._peak = gpu.flops[arithmetic(gpu, precision.weights)] * efficiency.compute
        self._plain_peak = gpu.flops[arithmetic(gpu, self._plain)] * efficiency.compute
        self._stages = parallel.pipeline
        self._routed = 1.0 + (parallel.data - 1) * others
        self._by_tokens: dict[int, float] = {}
        self._by_sequences: dict[int, float] = {}
        windowed = shape.windowed_layers if self.window is not None else 0
        kv_ns = counts.kv_layer_bytes(shape, precision.kv, parallel.tensor) / self._bandwidth * 1e9
        pair_ns = counts.pair_flops(shape) / parallel.tensor / self._plain_peak * 1e9
        self._kv_ns, self._pair_ns = (shape.layers - windowed) * kv_ns, (shape.layers - windowed) * pair_ns
        self._window_kv_ns, self._window_pair_ns = windowed * kv_ns, windowed * pair_ns
        self._absorbed_ns, self._unpack_ns = self._latent_ns()
        self._links_s(1, 1)

    def _latent_ns(self) -> tuple[float, float]:
        """Of latent attention, ns of a pair with projections absorbed, and ns of unpacking one token of context.

        The tokens of a step itself are unpacked by a matrix that counts with the others.
        """
        shape, latent = self.shape, self.shape.latent
        if latent is None:
            return 0.0, 0.0
        flops_ns = self._plain_peak * self.parallel.tensor / 1e9
        unpack = 2 * shape.heads * latent.kv_rank * (latent.nope_dim + latent.value_dim)
        return (
            shape.layers * counts.pair_flops(shape, absorbed=True) / flops_ns,
            shape.layers * unpack / flops_ns,
        )

    def step_ns(self, work: Work) -> int:
        """The duration of one step in ns, at least 1."""
        kv, pairs, tokens, sequences = work.kv_tokens, work.pairs, work.new_tokens, work.sequences
        share = 1.0
        if self._stages > 1:
            tokens, share = self._micro_batch(tokens, sequences)
        fixed = self._by_tokens.get(tokens)
        if fixed is None:
            fixed = self._tokens_ns(tokens)
        rest = self._by_sequences.get(sequences)
        if rest is None:
            rest = self._sequences_ns(sequences)
        memory, compute = kv * self._kv_ns, pairs * self._pair_ns
        if self._absorbed_ns:
            compute = pairs * self._absorbed_ns
            if work.prefill_pairs:
                compute = (pairs - work.prefill_pairs) * self._absorbed_ns + self._prompts_ns(work)
        attention = memory if memory > compute else compute
        if self.window is not None:
            memory, compute = (
                work.window_kv_tokens * self._window_kv_ns,
                work.window_pairs * self._window_pair_ns,
            )
            attention += memory if memory > compute else compute
        return int(fixed + rest + attention * share + 0.5) or 1

    def steps_ns(self, work: Work, steps: int, growth: int, window_growth: int) -> list[int]:
        """The durations of so many steps of decodes alone, as if `step_ns` were called for each.

        From step to step `kv_tokens` and `pairs` grow by `growth`, those of windowed layers by `window_growth`. The
        numbers are exactly those of `step_ns`: the same operations on doubles in the same order.
        """
        if steps < VECTORISED:
            return self._looped_ns(work, steps, growth, window_growth)
        import numpy as np

        tokens, share = work.new_tokens, 1.0
        if self._stages > 1:
            tokens, share = self._micro_batch(tokens, work.sequences)
        fixed = self._tokens_ns(tokens) + self._sequences_ns(work.sequences)
        grown = np.arange(steps, dtype=np.int64)
        kv, pairs = work.kv_tokens + grown * growth, work.pairs + grown * growth
        if self._absorbed_ns:
            compute = (pairs - work.prefill_pairs) * self._absorbed_ns + self._prompts_ns(work)
        else:
            compute = pairs * self._pair_ns
        attention = np.maximum(kv * self._kv_ns, compute)
        if self.window is not None:
            kv, pairs = (
                work.window_kv_tokens + grown * window_growth,
                work.window_pairs + grown * window_growth,
            )
            attention += np.maximum(kv * self._window_kv_ns, pairs * self._window_pair_ns)
        whole = (fixed + attention * share + 0.5).astype(np.int64)
        times: list[int] = np.maximum(whole, 1).tolist()
        return times

    def _looped_ns(self, work: Work, steps: int, growth: int, window_growth: int) -> list[int]:
        """`steps_ns` for few steps."""
        step = Work()
        for name in Work.__slots__:
            setattr(step, name, getattr(work, name))
        times = []
        for _ in range(steps):
            times.append(self.step_ns(step))
            step.kv_tokens += growth
            step.pairs += growth
            step.window_kv_tokens += window_growth
            step.window_pairs += window_growth
        return times

    def parts(self, work: Work) -> Parts:
        """Where the time of a step goes; the total is `step_ns` before it is rounded."""
        tokens, share = self._micro_batch(work.new_tokens, work.sequences)
        linear = [*self._token_groups(tokens), self._output_group(work.sequences)]
        attention = [(m * share, c * share) for m, c in self._attention_groups(work)]
        communication = self._links_s(tokens, work.sequences)
        overhead = self._overhead(work.sequences)
        spent: dict[Bound, float] = {
            "weights": sum(m for m, c in linear if m >= c),
            "kv": sum(m for m, c in attention if m >= c),
            "compute": sum(c for m, c in linear + attention if c > m),
            "communication": communication,
            "overhead": overhead,
        }
        return Parts(
            linear_memory=sum(m for m, _ in linear),
            linear_compute=sum(c for _, c in linear),
            attention_memory=sum(m for m, _ in attention),
            attention_compute=sum(c for _, c in attention),
            communication=communication,
            overhead=overhead,
            total=sum(spent.values()),
            bound=max(spent, key=spent.__getitem__),
        )

    @property
    def rates(self) -> Rates:
        """The rates from which the closed formulas follow; with pipeline stages for a batch that fills them."""
        part = self._weights
        compute = sum(c for _, c in self._token_groups(1)) + part.output_flops / self._plain_peak
        links = self._links_s(1, self._stages, replace(self.efficiency, latency=0.0))
        pair_ns = self._absorbed_ns or self._pair_ns + self._window_pair_ns
        return Rates(
            weights_s=(part.always_bytes + part.output_bytes) / self._bandwidth
            + self._experts_s(float("inf")),
            token_s=compute / self._stages,
            sequence_s=self.efficiency.sequence_s + links / self._stages,
            full_kv_s=self._kv_ns / 1e9 / self._stages,
            window_kv_s=self._window_kv_ns / 1e9 / self._stages,
            pairs=pair_ns / (self._kv_ns + self._window_kv_ns),
            window=self.window or 0,
        )

    def _links_s(self, tokens: int, sequences: int, reached: Efficiency | None = None) -> float:
        """Seconds on links of a step: the layers' of so many tokens (of one micro-batch), the logits' of so many sequences."""
        return self._layers_s(tokens, reached) + self._logits_s(sequences, reached)

    def _layers_s(self, tokens: int, reached: Efficiency | None = None) -> float:
        width = counts.plain_bytes(self.precision.weights)
        return layers_s(
            self.shape, self.gpu, self.parallel, tokens, width=width, reached=reached or self.efficiency
        )

    def _logits_s(self, sequences: int, reached: Efficiency | None = None) -> float:
        width, largest = counts.plain_bytes(self.precision.weights), -(-sequences // self._stages)
        return logits_s(
            self.shape, self.gpu, self.parallel, largest, width=width, reached=reached or self.efficiency
        )

    def _micro_batch(self, tokens: int, sequences: int) -> tuple[int, float]:
        """The tokens of the largest of a step's micro-batches, and its share of the step's sequences."""
        if self._stages == 1 or not sequences:
            return tokens, 1.0
        largest = -(-sequences // self._stages)
        return -(-tokens * largest // sequences), largest / sequences

    def _token_groups(self, tokens: int) -> list[tuple[float, float]]:
        """Memory and compute seconds of the matrices that tokens go through: those of all, and routed experts."""
        part, routed = self._weights, tokens * self._routed
        every = tokens * (part.linear_flops / self._peak + part.plain_flops / self._plain_peak)
        products = routed * self._distinct_experts(1) * part.expert_flops * self._padding / self._peak
        return [(part.always_bytes / self._bandwidth, every), (self._experts_s(routed), products)]

    def _experts_s(self, routed: float) -> float:
        """Streaming the experts that so many tokens need."""
        part = self._weights
        held = part.expert_layers * part.expert_bytes * self._padding
        return held * self._distinct_experts(routed) / self._bandwidth

    def _distinct_experts(self, routed: float) -> float:
        if self.efficiency.least:
            return self._weights.chosen if routed else 0.0
        return self._weights.distinct_experts(routed)

    @property
    def _padding(self) -> float:
        return 1.0 if self.efficiency.least else self._weights.padding

    def _output_group(self, sequences: int) -> tuple[float, float]:
        """The same of the output matrix. All sequences count, though a chunk that does not end its prompt samples nothing."""
        part = self._weights
        largest = -(-sequences // self._stages)
        return part.output_bytes / self._bandwidth, largest * part.output_flops / self._plain_peak

    def _attention_groups(self, work: Work) -> list[tuple[float, float]]:
        """The same of attention: of layers that attend to all tokens, and of windowed ones."""
        if self._absorbed_ns:
            compute = (work.pairs - work.prefill_pairs) * self._absorbed_ns + self._prompts_ns(work)
        else:
            compute = work.pairs * self._pair_ns
        groups = [(work.kv_tokens * self._kv_ns, compute)]
        if self.window is not None:
            groups.append(
                (work.window_kv_tokens * self._window_kv_ns, work.window_pairs * self._window_pair_ns)
            )
        return [(m / 1e9, c / 1e9) for m, c in groups]

    def _prompts_ns(self, work: Work) -> float:
        """Products of latent attention to prompts: projections absorbed, or the context before a chunk unpacked."""
        before = work.prefill_kv_tokens - work.prefill_tokens
        unpacked = work.prefill_pairs * self._pair_ns + before * self._unpack_ns
        return min(work.prefill_pairs * self._absorbed_ns, unpacked)

    def _overhead(self, sequences: int) -> float:
        reached = self.efficiency
        return reached.step_s + self.shape.layers * reached.layer_s + sequences * reached.sequence_s

    def _tokens_ns(self, tokens: int) -> float:
        """What depends on a step's tokens alone, ns; worked out once for each number of them."""
        known = self._by_tokens.get(tokens)
        if known is None:
            known = sum(max(group) for group in self._token_groups(tokens)) + self._layers_s(tokens)
            known = self._by_tokens[tokens] = known * 1e9
        return known

    def _sequences_ns(self, sequences: int) -> float:
        """What depends on a step's sequences alone, ns; worked out once for each number of them."""
        known = self._by_sequences.get(sequences)
        if known is None:
            once = max(self._output_group(sequences)) + self._overhead(sequences)
            known = self._by_sequences[sequences] = (once + self._logits_s(sequences)) * 1e9
        return known
