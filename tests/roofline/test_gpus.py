"""The table of accelerators: each figure has a source, names are found as people and drivers write them."""

from __future__ import annotations

import pytest

from loadstone.errors import UsageError
from loadstone.roofline.gpus import ALIASES, GPUS, find

GIB = 2**30

FIGURES = {
    "a100-40gb": (312, None, 1.555, 39.50),
    "a100-80gb-sxm": (312, None, 2.039, 79.25),
    "a100-80gb-pcie": (312, None, 1.935, 79.25),
    "h100-sxm": (989.4, 1978.9, 3.35, 79.18),
    "h100-pcie": (756, 1513, 2.0, 79.18),
    "h100-nvl": (835, 1671, 3.9, 93.58),
    "h200": (989.4, 1978.9, 4.8, 139.81),
    "b200": (2250, 4500, 8.0, 178.35),
    "gb200": (2500, 5000, 8.0, 185.03),
    "mi300x": (1307.4, 2614.9, 5.3, 191.69),
    "mi325x": (1307.4, 2614.9, 6.0, 255.98),
    "mi355x": (2516.6, 5033, 8.0, 287.98),
}
"""bf16 and fp8 TFLOP/s, TB/s, GiB."""

OWN = """
name = "rtx-4090"
title = "GeForce RTX 4090"
memory_bytes = 25_757_220_864
bandwidth = 1.008e12
flops = { fp32 = 82.6e12, bf16 = 165.2e12, fp8 = 330.3e12 }
"""


@pytest.mark.parametrize("name", FIGURES)
def test_the_figures_are_those_of_the_datasheets(name):
    bf16, fp8, bandwidth, memory = FIGURES[name]
    gpu = GPUS[name]
    assert gpu.flops["bf16"] == bf16 * 1e12
    assert gpu.flops.get("fp8") == (fp8 and fp8 * 1e12)
    assert gpu.bandwidth == bandwidth * 1e12
    assert round(gpu.memory_bytes / GIB, 2) == memory


@pytest.mark.parametrize("gpu", GPUS.values(), ids=lambda gpu: gpu.name)
def test_every_figure_has_a_source(gpu):
    given = {
        field
        for field in (
            "memory_bytes",
            "bandwidth",
            "flops",
            "link_bandwidth",
            "bridge_bandwidth",
            "network_bandwidth",
            "usd_hour",
        )
        if getattr(gpu, field) is not None
    }
    if gpu.link_latency_s:
        given.add("link_latency_s")
    if gpu.node_devices not in (1, 8):
        given.add("node_devices")
    assert given - gpu.sources.keys() == set()


def test_every_accelerator_but_two_has_a_price():
    dear = {name: gpu.usd_hour for name, gpu in GPUS.items() if not gpu.cpu}
    assert {name for name, price in dear.items() if price is None} == {"a100-40gb", "mi355x"}
    assert dear["h100-sxm"] == 3.99
    assert dear["gb200"] == 10.5


def test_a_mesh_has_a_link_to_each_other_device_of_the_node():
    assert GPUS["mi300x"].mesh
    assert GPUS["mi300x"].link_bandwidth == 7 * 64e9
    assert GPUS["mi355x"].link_bandwidth == pytest.approx(7 * 76.8e9)


def test_a_processor_has_as_much_bandwidth_as_its_channels():
    assert find("cpu-xeon-8480").bandwidth == 307.2e9
    assert find("cpu-epyc-9654").bandwidth == pytest.approx(460.8e9)
    assert find("cpu").bandwidth == 76.8e9
    assert find("cpu-xeon-8480").flops["bf16"] == 56 * 1024 * 2.0e9


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("h100", "h100-sxm"),
        ("H100-SXM", "h100-sxm"),
        ("a100", "a100-80gb-sxm"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA A100-SXM4-80GB", "a100-80gb-sxm"),
        ("AMD_Instinct_MI300X", "mi300x"),
    ],
)
def test_names_are_found_as_people_and_drivers_write_them(written, name):
    assert find(written) is GPUS[name]


def test_aliases_lead_somewhere_and_hide_no_name():
    assert set(ALIASES.values()) <= GPUS.keys()
    assert not ALIASES.keys() & GPUS.keys()


def test_an_unknown_name_is_told_the_nearest_and_all():
    with pytest.raises(UsageError, match=r"--gpu h10: not known\. Did you mean h100\? Known: a100-40gb, "):
        find("h10")
    with pytest.raises(UsageError, match=r"--gpu voodoo: not known\. Known: .* the path of a TOML file"):
        find("voodoo")


def test_another_accelerator_comes_from_a_file(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(OWN)
    gpu = find(str(path))
    assert (gpu.name, gpu.bandwidth, gpu.flops["bf16"]) == ("rtx-4090", 1.008e12, 165.2e12)
    assert gpu.link_bandwidth is None
    assert gpu.sources["bandwidth"] == str(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (OWN.replace("bandwidth", "bandwith"), r"bandwith.*Fields: name, title, memory_bytes"),
        (OWN.replace("1.008e12", "-1.0"), r">= 100000000\.0.*bandwidth"),
        (OWN.replace("1.008e12", "inf"), r"<= 1.*bandwidth"),
        (OWN.replace("1.008e12", "nan"), r"bandwidth"),
        (OWN.replace("1.008e12", "1e-300"), r">= 100000000\.0.*bandwidth"),
        (OWN.replace("165.2e12", "1e300"), r"<= 1.*flops"),
        (OWN.replace("bf16", "bf32"), r"bf32"),
        ("name =", r"not TOML"),
    ],
)
def test_a_file_with_a_mistake_says_where(tmp_path, text, why):
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=why):
        find(str(path))


def test_a_file_that_never_ends_is_not_read_to_its_end():
    with pytest.raises(UsageError, match="it is longer than 4 MiB"):
        find("/dev/zero")


def test_a_file_that_is_not_there_says_so(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        find(str(tmp_path / "none.toml"))
