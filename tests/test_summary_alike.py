"""Which runs may be fitted together, and what is said of them."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from loadstone.errors import UsageError
from loadstone.roofline.case import settled
from loadstone.summary.alike import Told, notes, refuse_unfit, refuse_unlike, told, words_of

LLAMA = "gpu=h100,model=llama-3.1-8b"
QWEN = "gpu=h100,model=qwen3-0.6b"


def run(name="a", model="m", words=LLAMA, *, built_in=False, url="http://host:8000"):
    case = settled(words, None) if words else None
    return Told(name, model, case, built_in, built_in and case is not None, ("sim:" if built_in else url,))


def together(*runs):
    return {one.folder: one for one in runs}


@pytest.fixture
def of(tables, answer):
    """What a run says that was told what it measures, in words or by its engine."""

    def make(words=LLAMA, urls=("http://host:8000",), roofline=None, rows=(), **answers):
        case = {} if words is None else {"roofline": msgspec.to_builtins(settled(words, None))}
        found = tables(*(rows or [answer(10, 20, **answers)]), environment=case)
        config = {**found.run.config, "endpoint": {"url": list(urls), "model": "m", "streaming": True}}
        config["server"] = {**config.get("server", {}), "roofline": roofline}
        return dataclasses.replace(found, run=msgspec.structs.replace(found.run, config=config))

    return make


def test_a_run_says_what_it_measured(of):
    found = told("a", of(model=0))
    assert (found.model, found.case, found.built_in, found.certain) == (
        "m",
        settled(LLAMA, None),
        False,
        False,
    )


@pytest.mark.parametrize(("roofline", "certain"), [(None, True), (LLAMA, False)])
def test_of_the_engine_itself_the_case_is_certain(of, roofline, certain):
    found = told("a", of(urls=["sim:gpu=h100,model=llama-3.1-8b"], roofline=roofline))
    assert (found.built_in, found.certain) == (True, certain)


def test_a_run_of_several_servers_is_refused(of, answer):
    with pytest.raises(UsageError, match="a: its requests went to several servers or models"):
        told("a", of(rows=[answer(10, 20, target=0), answer(10, 20, target=1)]))


def test_the_setup_of_an_engine_needs_no_flags(of):
    tables = of(words=f"{LLAMA},tensor_parallel_size=2", urls=["sim:gpu=h100,model=llama-3.1-8b"])
    asked = words_of(told("a", tables), tables)
    assert asked is not None
    assert (asked.gpu, asked.model, asked.tensor_parallel_size) == ("h100-sxm", "llama-3.1-8b", 2)


def test_runs_of_several_models_are_not_fitted_together():
    with pytest.raises(UsageError, match="a and c: the runs are of more than one model, m and other"):
        refuse_unlike(together(run("a"), run("b"), run("c", model="other")))


@pytest.mark.parametrize("words", [QWEN, f"{LLAMA},tensor_parallel_size=2", f"{LLAMA},quantization=fp8"])
def test_runs_of_several_setups_are_not_fitted_together(words):
    with pytest.raises(UsageError, match=r"more than one setup, llama-3\.1-8b bf16 on h100-sxm and "):
        refuse_unlike(together(run("a"), run("b", words=None), run("c", words=words)))


def test_what_runs_do_not_say_is_not_held_against_them():
    refuse_unlike(together(run("a"), run("b", model=None, words=None)))


def test_an_engine_is_not_fitted_as_another_one():
    with pytest.raises(
        UsageError, match=r"the engine was qwen3-0\.6b bf16 on h100-sxm, and not llama-3\.1-8b"
    ):
        refuse_unfit(together(run(words=QWEN, built_in=True)), settled(LLAMA, None))
    refuse_unfit(together(run(words=QWEN)), settled(LLAMA, None))


@pytest.mark.parametrize(("drafted", "where"), [(f"{LLAMA},num_speculative_tokens=3", LLAMA), (LLAMA, f"{LLAMA},num_speculative_tokens=3")])  # fmt: skip
def test_steps_of_several_tokens_are_not_fitted(drafted, where):
    with pytest.raises(
        UsageError, match=r"with speculation \(3 draft tokens\) a gap is no step of one token"
    ):
        refuse_unfit(together(run(words=drafted)), settled(where, None))


def test_nothing_is_to_be_said_of_good_runs_of_one_server():
    assert notes(together(run("a"), run("b")), settled(LLAMA, None), 4.0) == ()


def test_a_model_that_does_not_describe_the_runs_is_said_first():
    found = notes(together(run(built_in=True)), settled(LLAMA, None), 40.4)
    assert found[0].startswith("The model is 40 % off")
    assert found[1] == (
        "All runs are of the built-in engine: this says how the simulator was set, and nothing of hardware."
    )


def test_what_is_not_alike_but_may_be_is_said():
    runs = together(run("a"), run("b", url="http://other:8000"), run("c", built_in=True))
    found = notes(runs, settled(f"{LLAMA},tensor_parallel_size=2", None), 1.0)
    assert found[0].startswith("1 of 3 runs are of the built-in engine")
    assert found[1].startswith("The runs went to 2 addresses")
    assert found[2] == (
        "The runs were told that they measured llama-3.1-8b bf16 on h100-sxm; the flags go before that."
    )
