"""Which way is chosen, what is left out and why; candidates, prices and command lines."""

from __future__ import annotations

import msgspec
import pytest

from loadstone.capacity import commands
from loadstone.capacity.answer import Usual, answer, link_share, outdone
from loadstone.capacity.assumptions import assumptions
from loadstone.capacity.candidates import Asked, LeftOut, Setup, flags, name, setups, usual
from loadstone.capacity.console import Page, answered, page
from loadstone.capacity.processes import Here, Progress
from loadstone.capacity.search import Question
from loadstone.capacity.told import told
from loadstone.capacity.trial import METRICS
from loadstone.capacity.workload import Workload
from loadstone.errors import UsageError
from loadstone.sim.caution import caution
from loadstone.sim.options import SimOptions
from loadstone.slo import objectives

SHORT = Workload(isl=128, osl=16)


class Nowhere:
    """A stream that nobody watches."""

    def isatty(self):
        return False

    def write(self, text):
        raise AssertionError(text)


def here():
    return Here(Progress(Nowhere()))


def ask(slo="ttft.p99<200ms,itl.p99<30ms", rate=40.0, workload=SHORT):
    return Question(workload, objectives([slo], METRICS, "p99"), rate)


def asked(gpus=("h100", "a100"), tensor=(1,), **more):
    return Asked("llama-3.1-8b", gpus=gpus, tensor=tensor, batched_tokens=(512,), **more)


@pytest.fixture(scope="module")
def found():
    return answer(asked(), ask(), 0.0, here())


def test_the_cheapest_way_is_the_answer_and_was_tried_in_whole(found):
    costs = [way.usd_hour for way in found.ways]
    assert costs == sorted(costs)
    assert found.best is found.ways[0]
    assert found.best.whole.keeps(ask().objectives)
    assert found.best.usd_hour == found.best.devices * found.best.setup.gpu.usd_hour
    assert found.best.usd_million == pytest.approx(found.best.usd_hour / (40 * 16 * 3600 / 1e6))


def test_the_curve_goes_beyond_what_is_kept(found):
    rates = [trial.rate for trial in found.curve]
    assert len(rates) == 9
    assert rates[-2] == found.best.capacity.rate < rates[-1]


def test_another_price_makes_another_choice(found):
    cheapest, other = (way.setup.gpu.name for way in found.ways)
    prices = {cheapest: 100.0}
    assert answer(asked(prices=prices), ask(), 0.0, here()).best.setup.gpu.name == other


def test_what_has_no_price_stands_behind_what_has_one():
    found = answer(asked(gpus=("mi355x", "h100")), ask(), 0.0, here())
    assert [way.setup.gpu.name for way in found.ways] == ["h100-sxm", "mi355x"]
    assert found.ways[1].usd_hour is None
    priced = answer(asked(gpus=("mi355x", "h100"), prices={"mi355x": 0.1}), ask(), 0.0, here())
    assert priced.best.setup.gpu.name == "mi355x"


def test_where_nothing_keeps_the_objectives_the_nearest_is_told():
    about = ask("ttft.p99<200ms,itl.p99<1ms")
    found = answer(asked(), about, 0.0, here())
    assert (found.best, found.ways, found.curve) == (None, [], [])
    assert [one.kind for one in found.left_out] == ["objectives", "objectives"]
    assert all(one.miss > 1 for one in found.left_out)
    lines = page(found, Page(asked(), about, 0.0, "isl=128,osl=16", 80)).splitlines()
    assert lines[0].startswith("Nothing keeps the objectives at 40 requests/s")
    assert "Nearest:" in lines
    assert max(map(len, lines)) <= 80


def test_gaps_are_no_objective_of_answers_of_one_token():
    with pytest.raises(UsageError, match="have no gaps between tokens"):
        answer(asked(), ask(workload=Workload(isl=10, osl=1)), 0.0, here())


def test_a_model_that_fits_nowhere_is_a_mistake_of_the_question():
    large = Asked("llama-3.1-70b", gpus=("h100",), tensor=(1,))
    with pytest.raises(UsageError, match=r"nothing to try\. h100-sxm bf16: Out of memory"):
        answer(large, ask(), 0.0, here())


def test_setups_are_every_device_split_and_type():
    found = list(
        setups(Asked("llama-3.1-70b", gpus=("h100", "h200"), tensor=(1, 2), weights=("bf16", "fp8")), SHORT)
    )
    assert [one.name if isinstance(one, LeftOut) else name(one) for one in found] == [
        "h100-sxm bf16",
        "2 x h100-sxm bf16",
        "h100-sxm fp8",
        "2 x h100-sxm fp8",
        "h200 bf16",
        "2 x h200 bf16",
        "h200 fp8",
        "2 x h200 fp8",
    ]
    assert {one.name: one.kind for one in found if isinstance(one, LeftOut)}["h100-sxm bf16"] == "memory"


def test_without_devices_all_with_a_price_are_meant():
    names = {
        one.gpu.name for one in setups(Asked("llama-3.1-8b", tensor=(1,)), SHORT) if isinstance(one, Setup)
    }
    assert {"h100-sxm", "mi300x", "b200"} <= names
    assert "mi355x" not in names
    priced = setups(Asked("llama-3.1-8b", tensor=(1,), prices={"mi355x": 3.0}), SHORT)
    assert "mi355x" in {one.gpu.name for one in priced if isinstance(one, Setup)}


def test_more_devices_than_are_joined_are_left_out_unless_asked_for():
    default = list(setups(Asked("llama-3.1-8b", gpus=("h100-nvl",)), SHORT))
    assert [one.kind for one in default if isinstance(one, LeftOut)] == ["node", "node"]
    explicit = list(setups(Asked("llama-3.1-8b", gpus=("h100-nvl",), tensor=(4,)), SHORT))
    assert isinstance(explicit[0], Setup)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"gpus": ("h10",)}, "Did you mean h100"),
        ({"prices": {"b200": 1.0}}, "not among the devices: h100-sxm"),
        ({"base": SimOptions(max_model_len=100)}, "--max-model-len is 100"),
    ],
)
def test_what_is_refused(more, said):
    with pytest.raises(UsageError, match=said):
        list(setups(Asked("llama-3.1-8b", gpus=("h100",))._replace(**more), SHORT))


def test_the_line_to_copy_starts_what_was_tried(found):
    best = found.best
    options = best.capacity.options
    line = " ".join(commands.serve(options))
    assert line.startswith("vllm serve meta-llama/Llama-3.1-8B-Instruct --tensor-parallel-size 1")
    assert "--max-num-batched-tokens 512" in line
    assert "--max-model-len 144" in line
    fp8 = msgspec.structs.replace(options, quantization="fp8", pipeline_parallel_size=2)
    assert "--pipeline-parallel-size 2 --quantization fp8" in " ".join(commands.serve(fp8))
    assert commands.needs_a_copy(msgspec.structs.replace(options, quantization="int4"))
    assert not commands.needs_a_copy(fp8)


def test_the_closer_look_is_understood_by_the_engine(found):
    from loadstone.sim.options import from_url

    words = commands.closer(found.best, ask())
    url = next(word for word in words if word.startswith("--url ")).removeprefix("--url ").strip("'")
    assert from_url(url).data_parallel_size == found.best.replicas


@pytest.mark.parametrize("width", [80, 120])
def test_the_page_fits_its_width_but_for_what_is_to_be_copied(found, width):
    text = page(found, Page(asked(), ask(), 0.0, "isl=128,osl=16", width))
    wide = [line for line in text.splitlines() if len(line) > width]
    assert all("--url sim:" in line for line in wide)
    about = Page(asked(), ask(), 0.0, "isl=128,osl=16", width)
    assert text.replace("\n", " ").startswith(answered(found, about))
    assert "TTFT p99" in text
    assert "Assumptions:" in text
    assert "\x1b" not in text


def test_the_json_holds_the_same(found):
    import json

    values = json.loads(json.dumps(told(found, asked(), ask(), 0.0), allow_nan=False))
    assert values["best"]["devices"] == found.best.devices
    assert values["serve"].startswith("vllm serve")
    assert values["fleet"]["values"]["time_to_first_token.p99"] < 200
    assert [way["usd_hour"] for way in values["ways"]] == [way.usd_hour for way in found.ways]
    assert len(values["curve"]) == 9


def test_flags_that_do_not_fit_are_not_tried():
    several = Asked("llama-3.1-8b", gpus=("h100",), tensor=(1,), base=SimOptions(max_num_seqs=600))
    [setup] = setups(several, SHORT)
    tokens = [options.max_num_batched_tokens for options in flags(setup, ())]
    assert tokens == [1024, 2048, 4096, 8192, 16384]


@pytest.fixture(scope="module")
def with_amd():
    """AMD is a hundredth of the price, so that it is the cheapest."""
    asks = asked(gpus=("mi300x", "h100"), prices={"mi300x": 0.01})
    return asks, answer(asks, ask(), 0.0, here())


def one_setup(model="llama-3.1-8b", gpu="h100", **more):
    return next(
        one
        for one in setups(asked(gpus=(gpu,), **more)._replace(model=model), SHORT)
        if isinstance(one, Setup)
    )


@pytest.mark.parametrize(
    ("model", "gpu", "tensor", "said"),
    [
        ("llama-3.1-8b", "mi300x", 1, "on AMD took up to 1.9"),
        ("deepseek-v3", "h200", 8, "of DeepSeek took up to 3.0"),
        ("gpt-oss-20b", "h100", 1, "of gpt-oss took up to 2.2"),
        ("llama-3.1-8b", "b200", 1, "no published run on b200"),
    ],
)
def test_where_published_runs_say_that_it_is_too_fast_there_is_a_caution(model, gpu, tensor, said):
    assert said in caution(one_setup(model, gpu, tensor=(tensor,)).options).short
    assert caution(one_setup().options) is None


def test_the_first_line_says_so_and_names_the_cheapest_way_without_one(with_amd):
    asks, found = with_amd
    assert found.best.setup.gpu.name == "mi300x"
    assert found.near.setup.gpu.name == "h100-sxm"
    assert found.near.whole.keeps(ask().objectives)
    about = Page(asks, ask(), 0.0, "isl=128,osl=16", 100)
    assert answered(found, about) == (
        "1 x mi300x serves 40 requests/s of isl=128,osl=16 for 0.01 USD an hour (bf16), if the roofline is right: published runs on AMD"
        " took up to 1.9 times as long. The cheapest way for which they were near it: 1 x h100-sxm for 3.99 USD an hour (bf16)."
    )
    text = page(found, about)
    assert "mi300x bf16 *" in text
    assert "\n* published runs on AMD took up to 1.9 times as long\n" in text
    assert (
        "\ncaution   published runs on AMD took 1.3 (median) to 1.9 times as long as the roofline says"
        in text
    )
    values = told(found, asks, ask(), 0.0)
    assert values["cheapest_without_caution"]["gpu"] == "h100-sxm"
    assert [bool(way["caution"]) for way in values["ways"]] == [True, False]


def test_where_no_way_is_without_one_the_first_line_says_that_too(with_amd):
    asks, found = with_amd
    said = answered(found._replace(near=None), Page(asks, ask(), 0.0, "x", 100))
    assert said.endswith("No way is of a kind for which published runs were near it.")


def test_the_page_says_why_the_neighbours_lost(found):
    best = found.best
    fewer = best.whole._replace(values={**best.whole.values, ("time_to_first_token", "p99"): 833.0})
    usual = best.whole._replace(
        values={**best.whole.values, ("inter_token_latency", "p99"): 61.0}, sustained=False
    )
    other = found._replace(best=best._replace(replicas=3, fewer=(2, fewer)), usual=Usual(8192, usual))
    lines = page(other, Page(asked(), ask(), 0.0, "x", 200)).splitlines()
    assert "fewer     2 replicas, tried as a whole: TTFT p99 833 ms, where 200 are allowed" in lines
    one, two = other.best, other.best._replace(fewer=(7, fewer))
    text = page(other._replace(ways=[one, two]), Page(asked(), ask(), 0.0, "x", 200))
    assert f"\n{two.name}: 7 replicas, tried as a whole: TTFT p99 833 ms, where 200 are allowed.\n" in text
    [batched] = [line for line in lines if line.startswith("batched ")]
    assert batched.startswith(
        "batched   512 tokens a step, as a replica sustains most with them; with 8,192, vLLM's own number, "
    )
    assert batched.endswith(": ITL p99 61.0 ms, where 30 are allowed; requests pile up")
    kept = page(other._replace(usual=Usual(8192, best.whole)), Page(asked(), ask(), 0.0, "x", 200))
    assert ": the objectives are kept too\n" in kept


def test_vllms_own_number_of_tokens_is_tried_too(found):
    assert (found.best.setup.gpu.name, found.usual.tokens) in (("a100-80gb-sxm", 2048), ("h100-sxm", 8192))
    assert found.usual.trial.rate == found.best.capacity.rate
    [setup] = setups(Asked("llama-3.1-8b", gpus=("h100",), tensor=(1,), batched_tokens=(8192,)), SHORT)
    assert usual(flags(setup, (8192,))[0]) is None


def test_more_devices_that_bring_less_are_told_with_the_share_of_their_links(found):
    best = found.best
    two = next(iter(setups(Asked("llama-3.1-70b", gpus=("mi300x",), tensor=(2,), weights=("fp8",)), SHORT)))
    assert link_share(two, 4096) > 0.4
    assert link_share(best.setup, 4096) == 0
    one = best._replace(setup=one_setup(gpu="mi300x"))
    slower = one._replace(setup=one_setup(gpu="mi300x", tensor=(2,)))
    assert outdone([one, slower]) == [(slower, one)]
    assert outdone([one, slower._replace(capacity=one.capacity._replace(rate=2 * one.capacity.rate))]) == []
    text = page(found._replace(ways=[one, slower]), Page(asked(), ask(), 0.0, "x", 200))
    assert "2 x mi300x bf16 sustains no more than mi300x bf16: links take" in text


def test_prices_of_different_seasons_are_told(with_amd):
    ways = answer(asked(gpus=("mi300x", "a100")), ask(), 0.0, here())
    said = [text for text in assumptions(ways, asked(), ask(), 0.0) if text.startswith("These prices")]
    assert said == [
        "These prices lie more than three months apart, from 2026-05-18 (mi300x 1.99) to 2026-11-09 (a100-80gb-sxm 1.79), and the"
        " order of the ways rests on them: give today's with --price."
    ]
    asks, found = with_amd
    assert not [text for text in assumptions(found, asks, ask(), 0.0) if text.startswith("These prices")]


def test_what_a_closer_look_cannot_carry_is_said(found):
    shared = ask(workload=Workload(isl=128, osl=16, prefix=64))
    text = page(found, Page(asked(), shared, 0.0, "x", 200))
    assert "but with prompts that all differ, as profile cannot let them begin alike" in text
    assert "A closer look, here:\n" in page(found, Page(asked(), ask(), 0.0, "x", 200))
