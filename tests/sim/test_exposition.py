"""The page of /metrics, read by Prometheus's own parser."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client.parser import text_string_to_metric_families

from loadstone.sim.exposition import Page, State
from loadstone.sim.tally import Tally

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Engines:
    """Engines that stand still."""

    def __init__(self, *tallies: Tally) -> None:
        self.tallies: Sequence[Tally] = tallies

    def states(self) -> list[State]:
        return [
            State(
                running=3,
                waiting=2,
                kv_usage=0.25,
                prefix_queries=100,
                prefix_hits=60,
                external_queries=50,
                external_hits=40,
                preemptions=1,
            )
            for _ in self.tallies
        ]


def samples(page: Page) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page.render().decode())
        for sample in family.samples
    }


def labels(engine: int = 0, **more: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({"engine": str(engine), "model_name": "m", **more}.items()))


def page(*tallies: Tally, cache: dict[str, object] | None = None) -> Page:
    return Page("m", cache or {"block_size": 16}, Engines(*tallies))


def test_the_state_of_an_engine() -> None:
    found = samples(page(Tally(10)))
    assert {name: found[f"vllm:{name}", labels()] for name in (
        "num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "prefix_cache_queries_total",
        "prefix_cache_hits_total", "external_prefix_cache_queries_total", "external_prefix_cache_hits_total",
        "num_preemptions_total",
    )} == {
        "num_requests_running": 3, "num_requests_waiting": 2, "kv_cache_usage_perc": 0.25,
        "prefix_cache_queries_total": 100, "prefix_cache_hits_total": 60, "external_prefix_cache_queries_total": 50,
        "external_prefix_cache_hits_total": 40, "num_preemptions_total": 1,
    }  # fmt: skip


def test_counts_and_why_requests_ended() -> None:
    tally = Tally(10)
    tally.taken_in(prompt_tokens=7, cached_tokens=4)
    tally.stepped(prompt_tokens=7, tokens=2, gaps_ns={})
    tally.left()
    found = samples(page(tally))
    assert found["vllm:prompt_tokens_total", labels()] == 7
    assert found["vllm:prompt_tokens_cached_total", labels()] == 4
    assert found["vllm:generation_tokens_total", labels()] == 2
    assert found["vllm:request_success_total", labels(finished_reason="abort")] == 1
    assert found["vllm:request_success_total", labels(finished_reason="stop")] == 0


def test_histograms_are_cumulative_and_in_seconds() -> None:
    tally = Tally(10)
    tally.stepped(prompt_tokens=0, tokens=5, gaps_ns={10_000_000: 3, 30_000_000: 2})
    found = samples(page(tally))
    name = "vllm:inter_token_latency_seconds"
    assert found[f"{name}_bucket", labels(le="0.01")] == 3
    assert found[f"{name}_bucket", labels(le="0.025")] == 3
    assert found[f"{name}_bucket", labels(le="0.05")] == 5
    assert found[f"{name}_bucket", labels(le="+Inf")] == 5
    assert (found[f"{name}_count", labels()], found[f"{name}_sum", labels()]) == (5, 0.09)
    assert found["vllm:iteration_tokens_total_sum", labels()] == 5
    assert found["vllm:iteration_tokens_total_bucket", labels(le="8.0")] == 1


def test_every_engine_has_its_own_numbers() -> None:
    busy = Tally(10)
    busy.stepped(prompt_tokens=0, tokens=4, gaps_ns={})
    found = samples(page(Tally(10), busy))
    assert [found["vllm:generation_tokens_total", labels(engine)] for engine in (0, 1)] == [0, 4]


def test_how_the_cache_is_set_up() -> None:
    found = samples(page(Tally(10), cache={"block_size": 16, "enable_prefix_caching": True}))
    named = (("block_size", "16"), ("enable_prefix_caching", "True"), ("engine", "0"))
    assert found["vllm:cache_config_info", named] == 1


def test_speculation_is_on_the_page_when_there_is_some() -> None:
    assert not [name for name, _ in samples(page(Tally(10))) if "spec_decode" in name]
    tally = Tally(10, draft_tokens=2)
    tally.drafted(accepted=1)
    found = samples(page(tally))
    assert found["vllm:spec_decode_num_drafts_total", labels()] == 1
    assert found["vllm:spec_decode_num_draft_tokens_total", labels()] == 2
    assert found["vllm:spec_decode_num_accepted_tokens_total", labels()] == 1
    positions = [
        found["vllm:spec_decode_num_accepted_tokens_per_pos_total", labels(position=str(position))]
        for position in (0, 1)
    ]
    assert positions == [1, 0]


def test_engines_that_draft_nothing_have_no_drafts_on_the_page() -> None:
    found = samples(page(Tally(10, draft_tokens=1), Tally(10)))
    drafts = [dict(own)["engine"] for name, own in found if "spec_decode" in name]
    assert drafts
    assert set(drafts) == {"0"}


def test_an_answer_counts_its_choices_and_the_longest_of_them() -> None:
    tally = Tally(10)
    tally.answered(3, 7)
    found = samples(page(tally))
    assert found["vllm:request_params_n_sum", labels()] == 3
    assert found["vllm:request_params_n_bucket", labels(le="2.0")] == 0
    assert found["vllm:request_params_n_bucket", labels(le="5.0")] == 1
    assert found["vllm:request_max_num_generation_tokens_sum", labels()] == 7


ODD = 'a "b\\c\nd 100% %d'


def test_names_may_have_any_signs() -> None:
    tally = Tally(10)
    tally.stepped(prompt_tokens=0, tokens=5, gaps_ns={})
    found = samples(Page(ODD, {"cache_dtype": ODD}, Engines(tally)))
    assert found["vllm:generation_tokens_total", (("engine", "0"), ("model_name", ODD))] == 5
    assert found["vllm:cache_config_info", (("cache_dtype", ODD), ("engine", "0"))] == 1


def test_the_page_is_as_a_client_of_prometheus_writes_it() -> None:
    tallies = Tally(300, draft_tokens=2), Tally(300)
    for tally in tallies:
        tally.stepped(prompt_tokens=70, tokens=5, gaps_ns={10_000_000: 3, 31_415_926: 2})
        tally.left()
    tallies[0].drafted(accepted=1)
    text = page(*tallies, cache={"block_size": 16}).render().decode()
    families = list(text_string_to_metric_families(text))
    told = [line.split()[2].removesuffix("_total") for line in text.splitlines() if line.startswith("# TYPE")]
    assert [family.name.removesuffix("_total") for family in families] == told
    for family in families:
        assert family.documentation
        assert {sample.name.removeprefix(family.name) for sample in family.samples} <= {
            "gauge": {""}, "counter": {"", "_total"}, "histogram": {"_bucket", "_count", "_sum"},
        }[family.type]  # fmt: skip


def test_the_process_is_on_the_page() -> None:
    assert samples(page(Tally(10)))["process_start_time_seconds", ()] > 0
