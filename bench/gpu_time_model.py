"""Modelled device time of one kernel from its SASS, without a GPU. Nothing here was measured by opfuse: each coefficient
has its source. They are frozen: whoever changes one reports the old rows again under both. Error: +-35 % at best.

A kernel takes the longest of: issuing its instructions, its tensor-core products, its shared memory, its bytes; then a
fixed cost of its launch. Blocks run in rounds of as many as the multiprocessors hold at once."""
import dataclasses
import math
import re


@dataclasses.dataclass
class Device:
    """What a kernel runs on. `floor` is what is given as the best that this device could do."""
    multiprocessors: int
    clock: float           # Hz, under load
    copy: float            # bytes/s of a large copy, read and written together
    l2: float              # bytes/s of what stays in L2
    l2_bytes: int
    product_cycles: float  # of one m16n8k16 product of 16-bit types on one of the four sub-cores
    product_rate: float    # share of that which mma.sync reaches
    flops: dict            # operations/s of products by type, for floors
    shared_bytes: int
    blocks: int = 32


# H100 SXM: 132 multiprocessors (data sheet), 1.70 GHz under load and 3.0 TB/s copies (H100, seen with PyTorch, Nov 2026:
# earlier reading of this project); 790 TFLOP/s is torch.matmul 8192^3 on the same machine; mma.sync at 62.5 % of wgmma:
# arXiv 2402.13499, table of mma instructions. f32 FFMA 67 TFLOP/s x 0.82; tf32 half of f16 (data sheet). L2 5.5 TB/s:
# arXiv 2402.13499. A100 SXM: data sheet 312/156/19.5 TFLOP/s x 0.85, 108 multiprocessors, 1.41 GHz, 1.35 TB/s copies
# (calibrated on published TensorRT times); mma.sync is its native product.
DEVICES = {
    "sm_90a": Device(132, 1.70e9, 3.0e12, 5.5e12, 25 << 20, 4, 0.625,
                     {"f16": 790e12, "bf16": 790e12, "tf32": 395e12, "f32": 55e12}, 228 << 10),
    "sm_80": Device(108, 1.41e9, 1.35e12, 2.8e12, 20 << 20, 8, 0.90,
                    {"f16": 265e12, "bf16": 265e12, "tf32": 132e12, "f32": 16.5e12}, 164 << 10),
}
LAUNCH = 1.3e-6       # s between kernels of a replayed graph: NVIDIA blog on constant-time launch of straight graphs
LATENCY = 750         # cycles from a copy's issue to its landing in shared memory, L2 misses included: arXiv 2402.13499
STEP_LATENCY = 260    # cycles of a barrier, first ldmatrix and first product of a step
BLOCK_START = 1450    # cycles from a block's start to its first product, and from its last to its end
ISSUE = 0.75          # share of issue slots that kernels without products fill
SHARED_WIDTH = 128    # bytes a cycle


def floor_time(facts, dtype, arch):
    device = DEVICES[arch]
    kind = dtype if facts["flop"] > 0 else "f32"
    return max(facts["flop"] / device.flops[kind], (facts["read"] + facts["written"]) / device.copy)


def blocks_at_once(facts, device):
    warps = (facts["block"] + 31) // 32
    registers = (max(facts["registers"], 1) * 32 + 255) // 256 * 256 * warps
    shared = facts["shared"] + 1024
    return max(1, min(65536 // registers, 2048 // facts["block"], device.blocks, device.shared_bytes // shared))


def memory_time(facts, device):
    moved = facts["read"] + facts["written"]
    rate = device.l2 if moved <= device.l2_bytes else 0.92 * device.copy
    return moved / rate


def rounds(facts, device, resident):
    """Blocks that a multiprocessor has in each round."""
    whole, part = divmod(facts["grid"] / (device.multiprocessors * resident), 1)
    return [resident] * int(whole) + ([max(1, math.ceil(resident * part))] if part > 1e-9 else [])


def product_time(facts, device):
    """Main loop of products: the longest of issue slots, tensor cores, shared memory and latency, for each step."""
    loop, warps = facts["main_loop"], facts["block"] / 32
    hmma = loop["products"]
    steps = facts["products_per_warp"] / hmma if hmma else 0
    issue = warps / 4 * loop["issued"]
    shared = warps * loop["matrix_cycles"] + loop["filled_bytes"] / SHARED_WIDTH * 1.5
    rate = 1.0 if loop["groups"] else device.product_rate  # products of four warps reach the unit's own
    tensor = warps / 4 * hmma * device.product_cycles / rate
    bound = max(issue, shared, tensor) / 0.9
    resident = min(blocks_at_once(facts, device), max(1, -(-facts["grid"] // device.multiprocessors)))
    if facts["skeleton"] == "tma":  # a block starts once; copies and products of the next step are given out before a step ends
        behind, tiles = LATENCY / max(1, facts["stages"] - 1), math.ceil(facts["grid"] / (device.multiprocessors * resident))
        tail = facts["tail_issued"] * warps / 4 / 0.8
        return (BLOCK_START + tiles * (max(resident * bound, behind) * steps + resident * tail)) / device.clock
    behind = LATENCY / max(1, facts["stages"] - 1) + STEP_LATENCY
    tail = facts["tail_issued"] * warps / 4
    cycles = sum(max(r * bound, behind) * steps + BLOCK_START + r * tail / 0.8 for r in rounds(facts, device, resident))
    return cycles / device.clock


def other_time(facts, device):
    warps = facts["grid"] * facts["block"] / 32
    return warps * facts["issued"] / (device.multiprocessors * 4 * device.clock * ISSUE)


def kernel_time(facts, arch):
    device = DEVICES[arch]
    work = product_time(facts, device) if facts.get("main_loop") else other_time(facts, device)
    memory = memory_time(facts, device)
    if facts["narrow_stores"]:  # 4-byte stores of what could be 16: partial sectors
        memory *= 1.25 if facts.get("main_loop") else 1.6
    return max(work, memory) + LAUNCH


def numbers(text, key):
    found = re.search(rf"^//   {key} \[([\d,]*)\]", text, re.M)
    return [int(x) for x in found.group(1).split(",") if x] if found else []
