"""Accelerators by name, each figure with its source; others come from a TOML file with the fields of `Gpu`.

Peaks are those of dense matrices at the clock the vendor prints; a power cap or a cloud may give less.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from loadstone.errors import UsageError, did_you_mean
from loadstone.roofline import small_file
from loadstone.roofline.gpu import Compute, Gpu

MIB = 2**20
GIB = 2**30
TERA = 1e12
GIGA = 1e9

SMALL_REDUCE = "all-reduce of 512 B to 32 KiB over 2 to 8 H100: 3.7 to 7.8 us, sgl-project/sglang PR 2904 (2025-01-15); about the least"
REDUCE_AS_H100 = f"assumed to be as on H100 ({SMALL_REDUCE})"
PCIE_REDUCE = "one-shot all-reduce of 8 KiB over PCIe: 46.5 us, vllm-project/vllm issue 50576 (A800)"
NIC_400 = "assumed: one 400 Gbit/s NIC a device, as in Azure ND MI300X v5 and Nebius HGX B200 systems"
TORCH_TOTAL = "total as PyTorch reports it, in start-up logs of vLLM"
SMI_TOTAL = "nvidia-smi; CUDA reports about 0.3 % less"
RUNPOD = "RunPod Secure Cloud, on demand, 2026-11-09 (datareceipts/data-receipts, 109-gpu-pricing)"


def device(
    name: str, title: str, memory: tuple[int, str], datasheet: str, sources: dict[str, str], **figures: Any
) -> Gpu:
    """A row of the table; what names no other source is from the datasheet."""
    known = {
        "memory_bytes": memory[1],
        "bandwidth": datasheet,
        "flops": datasheet,
        "link_bandwidth": datasheet,
    }
    return Gpu(name=name, title=title, memory_bytes=memory[0], sources={**known, **sources}, **figures)


def peaks(**teraflops: float) -> dict[Compute, float]:
    """Peaks in FLOP/s from those in TFLOP/s."""
    return {msgspec.convert(compute, Compute): figure * TERA for compute, figure in teraflops.items()}


AMPERE = "NVIDIA A100 datasheet (nvidia-1758950, 2021)"
HOPPER = "NVIDIA H100 datasheet (2023; sparse figures halved)"
NVL = "NVIDIA H100 NVL product brief (2023; sparse figures halved)"
H200_SHEET = "NVIDIA H200 datasheet (2024; sparse figures halved)"
BLACKWELL = "NVIDIA Blackwell datasheet, HGX B200 (2025; sparse figures halved, an eighth of the system)"
GRACE = "NVIDIA GB200 NVL72 datasheet (2024; sparse figures halved, a 72nd of the rack)"
CDNA3 = "AMD Instinct MI300X data sheet (2023)"
MI325_SHEET = "AMD Instinct MI325X data sheet (2024)"
CDNA4 = "AMD Instinct MI355X data sheet (2025)"

NVLINK3 = {"link_bandwidth": 300 * GIGA, "link_latency_s": 4e-6, "network_bandwidth": 25 * GIGA}
NVLINK4 = {"link_bandwidth": 450 * GIGA, "link_latency_s": 4e-6, "network_bandwidth": 50 * GIGA}
NVLINK5 = {"link_bandwidth": 900 * GIGA, "link_latency_s": 4e-6, "network_bandwidth": 50 * GIGA}
ON_AMPERE = {
    "link_latency_s": REDUCE_AS_H100,
    "network_bandwidth": "DGX A100 datasheet: one 200 Gbit/s NIC a device",
}
ON_HOPPER = {"link_latency_s": SMALL_REDUCE, "network_bandwidth": NIC_400}
ON_OTHERS = {"link_latency_s": REDUCE_AS_H100, "network_bandwidth": NIC_400}
MESH = "seven Infinity Fabric links of {} GB/s in one direction, one to each other device"


def nvidia() -> list[Gpu]:
    """What NVIDIA makes."""
    a100 = peaks(fp32=19.5, bf16=312, int8=624)
    h100 = peaks(fp32=67, bf16=989.4, fp8=1978.9, int8=1978.9)
    return [
        device(
            "a100-40gb",
            "A100 SXM4 40 GB",
            (round(39.50 * GIB), TORCH_TOTAL),
            AMPERE,
            ON_AMPERE,
            bandwidth=1.555 * TERA,
            flops=a100,
            **NVLINK3,
        ),
        device(
            "a100-80gb-sxm",
            "A100 SXM4 80 GB",
            (85_093_777_408, TORCH_TOTAL),
            AMPERE,
            {**ON_AMPERE, "usd_hour": RUNPOD},
            bandwidth=2.039 * TERA,
            flops=a100,
            usd_hour=1.79,
            **NVLINK3,
        ),
        device(
            "a100-80gb-pcie",
            "A100 PCIe 80 GB",
            (85_093_777_408, f"{TORCH_TOTAL} for the SXM4 board"),
            AMPERE,
            {
                "link_bandwidth": "PCIe 4.0 x16",
                "bridge_bandwidth": f"{AMPERE}: an NVLink bridge for two, which not every machine has",
                "link_latency_s": PCIE_REDUCE,
                "network_bandwidth": ON_AMPERE["network_bandwidth"],
                "usd_hour": RUNPOD,
            },
            bandwidth=1.935 * TERA,
            flops=a100,
            link_bandwidth=32 * GIGA,
            bridge_bandwidth=300 * GIGA,
            link_latency_s=46.5e-6,
            network_bandwidth=25 * GIGA,
            usd_hour=1.79,
        ),
        device(
            "h100-sxm",
            "H100 SXM5 80 GB",
            (round(79.18 * GIB), f"{TORCH_TOTAL} (79.11 to 79.22 GiB)"),
            HOPPER,
            {
                **ON_HOPPER,
                "usd_hour": "Lambda, 8 on demand, 2026-09-25 (tgarg01/silybench-data, derived/csv/gpu_prices.csv)",
            },
            bandwidth=3.35 * TERA,
            flops=h100,
            usd_hour=3.99,
            **NVLINK4,
        ),
        device(
            "h100-pcie",
            "H100 PCIe 80 GB",
            (round(79.18 * GIB), f"{TORCH_TOTAL} for the SXM5 board; nvidia-smi shows the same for both"),
            HOPPER,
            {
                "link_bandwidth": "PCIe 5.0 x16",
                "bridge_bandwidth": f"{HOPPER}: an NVLink bridge for two, which not every machine has",
                "link_latency_s": PCIE_REDUCE,
                "network_bandwidth": NIC_400,
                "usd_hour": RUNPOD,
            },
            bandwidth=2.0 * TERA,
            flops=peaks(fp32=51, bf16=756, fp8=1513, int8=1513),
            link_bandwidth=64 * GIGA,
            bridge_bandwidth=300 * GIGA,
            link_latency_s=46.5e-6,
            network_bandwidth=50 * GIGA,
            usd_hour=2.89,
        ),
        device(
            "h100-nvl",
            "H100 NVL 94 GB",
            (95_830 * MIB, SMI_TOTAL),
            NVL,
            {
                "link_latency_s": REDUCE_AS_H100,
                "node_devices": "NVLink bridges join pairs",
                "network_bandwidth": "PCIe 5.0 x16, which joins the pairs of a machine",
                "usd_hour": RUNPOD,
            },
            bandwidth=3.9 * TERA,
            flops=peaks(fp32=60, bf16=835, fp8=1671, int8=1671),
            link_bandwidth=300 * GIGA,
            link_latency_s=4e-6,
            network_bandwidth=64 * GIGA,
            node_devices=2,
            usd_hour=3.19,
        ),
        device(
            "h200",
            "H200 SXM5 141 GB",
            (round(139.81 * GIB), TORCH_TOTAL),
            H200_SHEET,
            {
                **ON_OTHERS,
                "usd_hour": "Hyperstack, on demand, 2026-08-26 (api-evangelist/nexgen-cloud, plans)",
            },
            bandwidth=4.8 * TERA,
            flops=h100,
            usd_hour=3.99,
            **NVLINK4,
        ),
        device(
            "b200",
            "B200 SXM6 180 GB",
            (round(178.35 * GIB), "total as CUDA reports it, pytorch/ao PR 4002 (2026-03-05)"),
            BLACKWELL,
            {
                **ON_OTHERS,
                "bandwidth": f"{BLACKWELL}; a bus of 7680 bits, as some boards report it, gives 7.67 TB/s (pytorch/ao PR 4002)",
                "usd_hour": "Lambda, on demand, 2026 (skypilot-org/skypilot-catalog, v8/lambda/vms.csv)",
            },
            bandwidth=8.0 * TERA,
            flops=peaks(fp32=75, bf16=2250, fp8=4500, int8=4500, fp4=9000),
            usd_hour=6.99,
            **NVLINK5,
        ),
        device(
            "gb200",
            "GB200, one of its GPUs, 186 GB",
            (189_471 * MIB, SMI_TOTAL),
            GRACE,
            {
                **ON_OTHERS,
                "node_devices": "one NVLink domain is a rack of 72",
                "usd_hour": "CoreWeave, on demand, a quarter of 4 GPUs, 2026-09-20 (api-evangelist/coreweave, plans)",
            },
            bandwidth=8.0 * TERA,
            flops=peaks(fp32=80, bf16=2500, fp8=5000, int8=5000, fp4=10000),
            node_devices=72,
            usd_hour=10.50,
            **NVLINK5,
        ),
    ]


def amd() -> list[Gpu]:
    """What AMD makes."""
    cdna3 = peaks(fp32=163.4, bf16=1307.4, fp8=2614.9, int8=2614.9)
    links = {"link_latency_s": 4e-6, "network_bandwidth": 50 * GIGA, "mesh": True}
    return [
        device(
            "mi300x",
            "Instinct MI300X 192 GB",
            (round(191.69 * GIB), TORCH_TOTAL),
            CDNA3,
            {
                **ON_OTHERS,
                "link_bandwidth": MESH.format(64),
                "usd_hour": "median of providers, 2026-05-18 (cliffcenter.com, AMD inference economics)",
            },
            bandwidth=5.3 * TERA,
            flops=cdna3,
            link_bandwidth=448 * GIGA,
            usd_hour=1.99,
            **links,
        ),
        device(
            "mi325x",
            "Instinct MI325X 256 GB",
            (round(255.98 * GIB), TORCH_TOTAL),
            MI325_SHEET,
            {
                **ON_OTHERS,
                "link_bandwidth": MESH.format(64),
                "usd_hour": "TensorWave, 2026-05-18 (cliffcenter.com, AMD inference economics)",
            },
            bandwidth=6.0 * TERA,
            flops=cdna3,
            link_bandwidth=448 * GIGA,
            usd_hour=1.95,
            **links,
        ),
        device(
            "mi355x",
            "Instinct MI355X 288 GB",
            (round(287.98 * GIB), TORCH_TOTAL),
            CDNA4,
            {**ON_OTHERS, "link_bandwidth": MESH.format(76.8)},
            bandwidth=8.0 * TERA,
            flops=peaks(fp32=157.3, bf16=2516.6, fp8=5033, int8=5033, fp4=10066),
            link_bandwidth=537.6 * GIGA,
            **links,
        ),
    ]


def cpu(name: str, title: str, memory_gib: int, channels: int, flops: dict[Compute, float], why: str) -> Gpu:
    """A socket with DDR5-4800: 8 bytes x 4.8e9 transfers/s a channel (JEDEC JESD79-5). One device, no links."""
    return Gpu(
        name=name,
        title=title,
        cpu=True,
        memory_bytes=memory_gib * GIB,
        bandwidth=channels * 38.4 * GIGA,
        flops=flops,
        node_devices=1,
        sources={
            "memory_bytes": f"assumed: {memory_gib} GiB of memory",
            "bandwidth": f"{channels} channels of DDR5-4800, 38.4 GB/s each (JEDEC JESD79-5)",
            "flops": why,
        },
    )


def cpus() -> list[Gpu]:
    """Processors, by arithmetic: FLOP/s = cores x FLOPs a cycle x clock. AVX2: two FMAs of 8 floats, 32 FLOPs a cycle."""
    avx2 = "assumed: AVX2 at 3 GHz, two FMA units of 8 floats a core, no arithmetic for bf16"
    return [
        cpu("cpu-1-core", "one core with two channels of DDR5", 16, 2, peaks(fp32=0.096), avx2),
        cpu("cpu-2-core", "two cores with two channels of DDR5", 16, 2, peaks(fp32=0.192), avx2),
        cpu(
            "cpu-xeon-8480",
            "Xeon Platinum 8480+, one socket of 56 cores",
            512,
            8,
            peaks(fp32=7.168, bf16=114.688, int8=229.376),
            "56 cores at 2.0 GHz, the base clock (Intel ARK); a cycle does 1024 FLOPs in bf16 and 2048 in int8 with AMX, 64"
            " in fp32 with two AVX-512 FMA units (Intel optimization manual)",
        ),
        cpu(
            "cpu-epyc-9654",
            "EPYC 9654, one socket of 96 cores",
            768,
            12,
            peaks(fp32=7.3728, bf16=14.7456),
            "96 cores at 2.4 GHz, the base clock (AMD EPYC 9654 product page); a cycle does 32 FLOPs in fp32 and 64 in bf16"
            " (Zen 4 optimization guide: AVX-512 in two halves)",
        ),
    ]


GPUS: dict[str, Gpu] = {gpu.name: gpu for gpu in [*nvidia(), *amd(), *cpus()]}
"""All that are known, by name."""

ALIASES = {
    "a100": "a100-80gb-sxm",
    "a100-sxm": "a100-80gb-sxm",
    "a100-80gb": "a100-80gb-sxm",
    "a100-pcie": "a100-80gb-pcie",
    "a100-40gb-sxm": "a100-40gb",
    "h100": "h100-sxm",
    "h100-80gb": "h100-sxm",
    "h200-sxm": "h200",
    "b200-sxm": "b200",
    "cpu": "cpu-2-core",
    "xeon-8480": "cpu-xeon-8480",
    "epyc-9654": "cpu-epyc-9654",
    "nvidia-a100-sxm4-40gb": "a100-40gb",
    "nvidia-a100-sxm4-80gb": "a100-80gb-sxm",
    "nvidia-a100-80gb-pcie": "a100-80gb-pcie",
    "nvidia-h100-80gb-hbm3": "h100-sxm",
    "nvidia-h100-pcie": "h100-pcie",
    "nvidia-h100-nvl": "h100-nvl",
    "nvidia-h200": "h200",
    "nvidia-b200": "b200",
    "nvidia-gb200": "gb200",
    "amd-instinct-mi300x": "mi300x",
    "amd-instinct-mi325x": "mi325x",
    "amd-instinct-mi355x": "mi355x",
}
"""Shorter names, and those that drivers print."""


def find(name: str) -> Gpu:
    """The accelerator of this name, or of the TOML file at this path. UsageError: there is none, or a field is wrong."""
    if name.endswith(".toml") or "/" in name:
        return from_file(Path(name))
    word = "-".join(name.lower().replace("_", "-").split())
    gpu = GPUS.get(ALIASES.get(word, word))
    if gpu is None:
        guess = did_you_mean(word, [*GPUS, *ALIASES])
        raise UsageError(
            f"--gpu {name}: not known. {guess + ' ' if guess else ''}Known: {', '.join(GPUS)}; or the path of a TOML file"
            " with the fields name, title, memory_bytes, bandwidth and flops."
        )
    return gpu


def from_file(path: Path) -> Gpu:
    """An accelerator from a TOML file with the fields of `Gpu`, in bytes, bytes/s, FLOP/s and seconds.

    What names no source comes from the file itself. UsageError: the file cannot be read, or a field is wrong.
    """
    try:
        fields = tomllib.loads(small_file.read(path).decode())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"--gpu {path}: {reason}. Give a known name or the path of a TOML file.") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"--gpu {path}: not TOML: {error}.") from None
    try:
        gpu = msgspec.convert(fields, Gpu)
    except msgspec.ValidationError as error:
        raise UsageError(f"--gpu {path}: {error}. Fields: {', '.join(Gpu.__struct_fields__)}.") from None
    origin = {field: str(path) for field in fields if field not in ("name", "title", "sources")}
    return msgspec.structs.replace(gpu, sources={**origin, **gpu.sources})
