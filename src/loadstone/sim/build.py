"""From options to engines: what their steps cost, what they hold, and how they stand behind one address."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from loadstone.errors import UsageError
from loadstone.roofline.work import StepCost
from loadstone.sim.cost import Linear
from loadstone.sim.deployment import Deployment
from loadstone.sim.engine import Engine, Limits
from loadstone.sim.options import JOINS, SimOptions
from loadstone.sim.sequence import Sequence

S = TypeVar("S", bound=Sequence)
LINEAR = Limits()
"""What an engine without a device takes at a time."""


def deployment(options: SimOptions) -> Deployment[S]:
    """The engines that the options ask for. Raises `UsageError` where the model, the device or its memory forbid them."""
    modelled = options.gpu is not None or options.calibration is not None
    built = _modelled(options) if modelled else _linear(options)
    prefill = built.limits._replace(prefill_only=True)
    return Deployment(
        [Engine(built.cost, built.limits) for _ in range(options.data_parallel_size)],
        options.router,
        [Engine(built.cost, prefill) for _ in range(options.prefill_replicas)],
        _transfer(options, built.token_bytes),
    )


class _Built(NamedTuple):
    """What all engines of a deployment have in common."""

    cost: StepCost
    limits: Limits
    token_bytes: float
    """KV cache of one token, on all its devices."""


def _modelled(options: SimOptions) -> _Built:
    """A model on devices: steps by the roofline, blocks by the memory."""
    from loadstone.roofline import memory, weights  # of use only where there is a device
    from loadstone.sim.case import modelled

    found = modelled(options)
    assert found is not None, "a device or a calibration names the hardware"
    setup, efficiency = found
    cost = setup.roofline(efficiency)
    devices = setup.parallel.tensor * setup.parallel.pipeline
    default = memory.default_flags(setup.gpu, devices)
    tokens = options.max_num_batched_tokens or default.max_num_batched_tokens
    flags = memory.Flags(tokens, _sequences(options, default.max_num_seqs, tokens))
    longest = options.max_model_len or setup.shape.max_model_len
    blocks = options.num_gpu_blocks_override
    if blocks is None:
        blocks = memory.memory(
            setup.shape,
            setup.gpu,
            setup.precision,
            setup.parallel,
            utilization=options.gpu_memory_utilization,
            flags=flags,
            max_model_len=longest,
            block_tokens=options.block_size,
        ).blocks
    limits = _limits(
        options, Limits(flags.max_num_seqs, flags.max_num_batched_tokens, blocks, max_model_len=longest)
    )
    return _Built(cost, limits, weights.kv_token_bytes(setup.shape, setup.precision.kv))


def _linear(options: SimOptions) -> _Built:
    cost = Linear(
        round(options.step_ms * 1e6),
        round(options.step_us_per_sequence * 1e3),
        round(options.prefill_us_per_token * 1e3),
    )
    tokens = options.max_num_batched_tokens or LINEAR.max_num_batched_tokens
    default = LINEAR._replace(max_num_seqs=_sequences(options, LINEAR.max_num_seqs, tokens))
    return _Built(cost, _limits(options, default), 0.0)


def _sequences(options: SimOptions, default: int, tokens: int) -> int:
    """How many run together: as told, which must not be more than all fit in a step of so many tokens, else as many as do."""
    each = 1 + options.num_speculative_tokens
    fit, asked = tokens // each, options.max_num_seqs or 1
    if not fit:
        raise UsageError(
            f"num_speculative_tokens = {options.num_speculative_tokens}: with its drafts one request takes {each} tokens a step,"
            f" and max_num_batched_tokens is {tokens}. Lower the one or raise the other."
        )
    if asked > fit:
        raise UsageError(
            f"max_num_seqs = {asked}: that many take {asked * each} tokens a step, drafts included, and max_num_batched_tokens"
            f" is {tokens}. Lower the one or raise the other."
        )
    return options.max_num_seqs or min(default, fit)


def _limits(options: SimOptions, default: Limits) -> Limits:
    """What an engine takes at a time: as told, else as the device's defaults say."""
    return Limits(
        max_num_seqs=default.max_num_seqs,
        max_num_batched_tokens=options.max_num_batched_tokens or default.max_num_batched_tokens,
        blocks=options.num_gpu_blocks_override or default.blocks,
        block_size=options.block_size,
        max_model_len=options.max_model_len or default.max_model_len,
        chunked=options.enable_chunked_prefill,
        long_prefill_token_threshold=options.long_prefill_token_threshold,
        reserve_full_isl=options.scheduler_reserve_full_isl,
        by_priority=options.scheduling_policy == "priority",
        caching=options.enable_prefix_caching,
        draft_rates=_draft_rates(options),
        draft_share=options.draft_cost,
        seed=options.seed,
    )


def _draft_rates(options: SimOptions) -> tuple[float, ...]:
    """The chance of each draft position; the last one given goes on."""
    given = options.acceptance_rates.split(JOINS)
    try:
        rates = [float(rate) for rate in given]
    except ValueError:
        rates = []
    if not rates or not all(0 <= rate <= 1 for rate in rates):
        raise UsageError(
            f"acceptance_rates = {options.acceptance_rates!r}: give chances between 0 and 1, such as 0.8{JOINS}0.7."
        )
    drafts = options.num_speculative_tokens
    return tuple((rates + [rates[-1]] * drafts)[:drafts])


def _transfer(options: SimOptions, token_bytes: float) -> Callable[[int], int]:
    """How long a KV cache of so many tokens is on its way, in ns."""
    ns_a_token = token_bytes * 8 / options.kv_transfer_gbps
    return lambda tokens: round(tokens * ns_a_token)
