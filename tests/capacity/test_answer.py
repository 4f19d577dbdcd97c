"""Which way is chosen, what is left out and why; candidates, prices and command lines."""

from __future__ import annotations

import msgspec
import pytest

from loadstone.capacity import commands
from loadstone.capacity.answer import answer
from loadstone.capacity.assumptions import caution
from loadstone.capacity.candidates import Asked, LeftOut, Setup, flags, name, setups
from loadstone.capacity.console import Page, answered, page
from loadstone.capacity.processes import Here, Progress
from loadstone.capacity.search import Question
from loadstone.capacity.told import told
from loadstone.capacity.trial import METRICS
from loadstone.capacity.workload import Workload
from loadstone.errors import UsageError
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
    return Question(workload, objectives(slo, METRICS), rate)


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
    assert line.startswith("vllm serve meta-llama/Llama-3.1-8B --tensor-parallel-size 1")
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


def test_where_published_runs_say_that_it_is_too_fast_there_is_a_caution(found):
    amd = next(one for one in setups(asked(gpus=("mi300x",)), SHORT) if isinstance(one, Setup))
    assert "too fast" in caution(found.best._replace(setup=amd), asked())
    assert "DeepSeek" in caution(found.best, asked()._replace(model="deepseek-v3"))
    assert "gpt-oss" in caution(found.best, asked()._replace(model="gpt-oss-20b"))
    assert caution(found.best, asked()) is None
