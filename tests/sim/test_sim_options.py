from __future__ import annotations

import pytest

from loadstone.errors import UsageError
from loadstone.sim.options import SimOptions, from_url


def test_a_bare_scheme_is_the_defaults() -> None:
    assert from_url("sim:") == SimOptions()


def test_keys_are_typed() -> None:
    options = from_url("sim:step_ms=5, max-num-seqs=3,null=true,reasoning=all,model=m")
    assert options == SimOptions(step_ms=5.0, max_num_seqs=3, null=True, reasoning="all", model="m")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sim:stepms=5", "sim: there is no option 'stepms'. Did you mean step_ms?"),
        ("sim:step_ms", "sim: 'step_ms' is not KEY=VALUE; write for example sim:step_ms=5,model=m."),
        ("sim:fault=eof,fault=reset", "sim: 'fault' is given twice; join several with +: fault=eof+reset."),
        ("sim:step-ms=5,step_ms=6", "sim: 'step_ms' is given twice; give it once."),
        ("sim:step_ms=fast", "sim: step_ms: Expected `float`, got `str`."),
        ("sim:step_ms=0", "sim: step_ms: Expected `float` > 0.0."),
        ("sim:step_ms=inf", "sim: step_ms: Expected `float` <= 3600000.0."),
        ("sim:step_ms=nan", "sim: step_ms: Expected `float` > 0.0."),
        ("sim:port=70000", "sim: port: Expected `int` <= 65535."),
        ("sim:reasoning=some", "sim: reasoning: Invalid enum value 'some'."),
    ],
)
def test_wrong_options_get_one_sentence(url: str, message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        from_url(url)
    assert str(refusal.value).startswith(message)


def test_faults_are_joined_in_an_address() -> None:
    assert from_url("sim:fault=eof+reset").fault == ("eof", "reset")


@pytest.mark.parametrize("url", ["sim:api_key:hunter2", "sim:api-key=a,hunter2"])
def test_a_key_that_was_given_wrongly_is_not_shown(url: str) -> None:
    with pytest.raises(UsageError, match=r"^sim: \*\*\* is not KEY=VALUE"):
        from_url(url)
