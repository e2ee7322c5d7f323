// What a device can run, and its numbers. They are data: targets/*.toml, compiled in, or a file given by its path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fusion_margins.hpp"

namespace opfuse {

/// What generator and runtime of a kind of device do; the table of kinds is in kinds.cpp.
struct DeviceTraits {
  bool on_host = true;            ///< kernels run on the host's threads; launches may be host functions
  bool shapes_for_caches = true;  ///< groups are joined, cut and run by images so that maps stay in caches (shape/)
  bool channel_blocks = true;     ///< fast kernels: f32, channels in blocks of lanes; else 16 bits, channels last
  bool rows_in_place = true;      ///< kernels reduce a row before they store it
  bool loops = true;              ///< launches run in loops over steps and images
  bool has_variants = true;       ///< programs for given sizes
  bool chooses_algorithms = true;
  bool stretches_itself = false;  ///< any kernel broadcasts along open dimensions of 1
};

/// Bytes per cycle of one core. Cost models need their order, not the last tenth.
struct MachineRates {
  double memory = 0;
  double memory_gain_per_doubling = 0;  ///< twice the cores get so many times the bytes
  double l3_weights = 0;                ///< weights, beside a full stream of multiply-adds
  double l3_data = 0;                   ///< transformed data: shorter rows, which the hardware fetches ahead
  double maps = 0;                      ///< a map between two kernels, wherever it lies in L2 or L3
  double products = 0;                  ///< of a product map * gate, loads and stores together
  double scaled_weights = 0;            ///< weights that a part scales, from beyond L2
};

/// What starting work costs, and how much of it is worth that.
struct LaunchCosts {
  double cycles = 0;                    ///< of a launch: the workers meet
  double part_cycles = 0;               ///< of a part: start, and waiting for the others
  double part_seconds = 0;              ///< the least work of a part
  double multiply_adds_per_second = 0;  ///< of a lane
  double bytes_per_second = 0;          ///< of a core, from memory
  int64_t threads = 0;                  ///< of the runs, where known: no file says it, a compilation does
  /// Bytes of scratch per thread that kernels of several stages may have, likewise; none: no such bound.
  std::optional<int64_t> workspace{};
};

/// Cycles of one core for a vector of f32, by which groups are priced before they have schedules (cpu/group_cost.hpp).
struct VectorCosts {
  double simple = 0;          ///< an addition, a comparison, a maximum
  double division = 0;        ///< and remainders
  double root = 0;            ///< a square root
  double function = 0;        ///< exp, log, tanh ...
  double erf = 0;             ///< looks its polynomial up
  double power = 0;           ///< x ^ y
  double index_division = 0;  ///< a quotient of two indices
  double access = 0;          ///< loaded or stored as it lies in memory
  double turned = 0;          ///< of a square that is transposed in registers
  double element = 0;         ///< one lane that is loaded or stored by itself
  double point = 0;           ///< what a loop does besides
  double row = 0;             ///< a row: its loops, and lanes that are combined
  double second = 0;          ///< a vector of every second element
  double far = 0;             ///< one lane whose neighbours are in other lines, and rows wait for it
  double in_row = 0;          ///< times: a function inside a reduction, where fewer overlap than in a map
  double tile_vectors = 0;    ///< of outputs of a contraction that share an element of computed data
  double read_share = 0;      ///< of a byte that is read and one that is written, which together count 2: the first
};

/// Inside kernels with schedules, beside multiply-adds: cycles of one core where nothing else is said. By these
/// algorithms, tiles and joins are chosen.
struct KernelCosts {
  double overlap_loss = 0;        ///< of two things that overlap, the share of the shorter that is waited for
  double exposed_weights = 0;     ///< the share of the time in which weights arrive
  double winograd_step = 0;       ///< a step over the channels
  double winograd_tile = 0;       ///< a register tile: its sums are cleared and stored
  double winograd_transform = 0;  ///< a tile transformed, besides its additions and stores
  double winograd_weights = 0;    ///< a vector of weights, which comes from L2 or beyond
  double winograd_idle = 0;       ///< of many threads: the share of the time of those without a part
  double chain_switch = 0;        ///< the share of a chain's multiply-adds that going from one stage to the other costs
  double chain_function = 0;      ///< a vector of exp, tanh, erf ... in a chain
  double scaled_vector = 0;       ///< a vector of weights that is multiplied by a factor
  double pixel_turned = 0;        ///< an element that is packed, or stored, with pixels in the lanes
  double pixel_weights = 0;       ///< a step whose weights come from L2 line by line
  double scattered = 0;           ///< a lane that is stored by itself
  double scattered_in_set = 0;    ///< the same where all lanes fall into one set of a cache
  double step = 0;                ///< a step of a tile, besides its instructions
  double load_slack = 0;          ///< times: loads of a tile, over what the units load at most
  double weights_vector = 0;      ///< a vector of weights of a step, at the least
  double ragged_blocks = 0;       ///< times: blocks of which the last is narrower
  double overlap_few = 0;         ///< saved per vector of results whose functions run between multiply-adds
  double overlap_many = 0;        ///< the same with registers to spare
  double rounded_vector = 0;      ///< of codes that are made of sums, where no products run beside it
  double looks_ahead = 0;         ///< instructions of which a core runs some beside others
  double attention_step = 0;      ///< a step of attention, for any number of rows
  double winograd_launch = 0;     ///< of a launch: its barrier and first transforms, in which no weights arrive
  double without_tiles = 0;       ///< times: a contraction without register tiles
  double reached = 0;             ///< the share of the multiply-add rate, with pixels or channels in the lanes
  double straddling = 0;          ///< times: lanes of several groups in one vector
  double phased_lanes = 0;        ///< times: lanes of channels with phases of results
  double pixel_weights_near = 0;  ///< a step with pixels in the lanes whose weights come from L1
  int64_t pixel_lines = 0;        ///< lines of weights that stay in L1 beside the data
  double algorithm_gain = 0;      ///< of its time, what an algorithm with more bytes must save
  double paired_extras = 0;       ///< of its octets, how many codes in pairs may multiply twice; < 0: none are in pairs
  double copy_gain = 0;           ///< the same of an input that is copied into blocks for its reader
  double turned_rate = 0;         ///< bytes a cycle of such a copy, turned in registers
  double open_tile = 0;           ///< rows that a tile costs besides, where the number of rows is open
  int64_t packed_rows = 0;        ///< rows that use a part's packed weights, at the least
};

/// How launches are cut into parts: shares of the launch's time, where nothing else is said.
struct PartCosts {
  double missing = 0;        ///< one part where many are wanted
  double odd = 0;            ///< of two workers, one has a part more
  double each = 0;           ///< of many workers: a part
  double grain_of_many = 0;  ///< of the least work of a part: that of many workers
  double chain_each = 0;     ///< of a chain: a part
  double chain_odd = 0;      ///< of a chain: of two workers, one has a part more
  double chain_late = 0;     ///< of a part of a chain: what a worker that wakes late leaves to the other
  double pixel_uneven = 0;   ///< of what two workers share unevenly, the share that is waited for
};

/// What may stay in a cache while the rest passes: shares of L2, where no other level is said.
struct CacheShares {
  double weights = 0;           ///< two blocks of weights
  double l3_weights = 0;        ///< of L3: weights that are read again
  double pass = 0;              ///< a pass of weights, its data, and sums that rest
  double copies = 0;            ///< data of a product, copied
  double packed_weights = 0;    ///< a block of weights that are packed
  double attention = 0;         ///< keys and values
  double attention_blocks = 0;  ///< the same where there are several blocks
  double attention_whole = 0;   ///< the same where all keys must be in one block
  double winograd_data = 0;     ///< transformed data
  double winograd_part = 0;     ///< weights and data of a part
  double winograd_l3 = 0;       ///< of L3: data of a part that are transformed at a time
  double chain_band = 0;        ///< rows between the stages of a chain
  double pixels = 0;            ///< a packed band
  double group = 0;             ///< of each level: operands and results of a group that is priced
};

/// A code generation target. CPUs: `cpu:baseline` (SSE2), `cpu:avx2` (AVX2+FMA), `cpu:avx512` (AVX-512 F/VL/BW/DQ),
/// `cpu` or `host`: the best this machine runs. NVIDIA GPUs: `cuda:sm_90` and the like; `cuda:emulated` runs the same
/// kernels on the host, for tests. docs/targets.md lists the fields as files have them.
struct TargetInfo {
  std::string name;  ///< "cpu:avx512"
  std::string kind;  ///< "cpu", "cuda"
  std::string about;
  DeviceTraits traits;
  int vector_bytes = 0;      ///< 64, 32, 16
  int vector_registers = 0;  ///< 32 or 16
  bool fma = false;
  std::string llvm_cpu;               ///< e.g. "x86-64-v4"
  std::vector<std::string> features;  ///< CPU features the code needs: "avx512f", "fma", ...
  std::vector<std::string> beside;    ///< those of them that the machine has besides: only kernels that gain use them
  int64_t fma_units = 0, fma_latency = 0, load_units = 0;
  int64_t line_bytes = 0, l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;
  MachineRates rates;
  LaunchCosts launch;
  VectorCosts costs;
  KernelCosts kernels;
  PartCosts parts;
  CacheShares shares;
  FusionMargins margins;
  double gpu_launch_seconds = 4e-6, gpu_bytes_per_second = 1e12;  ///< of devices besides CPUs, where no file says more
  std::string cuda_arch;                                          ///< "sm_90"; empty for CPUs
  bool emulated = false;         ///< the GPU that the host plays: kernels run as fibers
  int64_t multiprocessors = 0;   ///< of the largest product
  int64_t shared_kilobytes = 0;  ///< shared memory that a block may have
  std::string fingerprint;  ///< what the name does not tell: numbers of a file, features besides; tells kernels apart

  bool is_cuda() const { return !cuda_arch.empty(); }  ///< for the table of generators; others ask for a trait
  bool has(std::string_view feature) const;
  int64_t lanes_f32() const { return vector_bytes / 4; }
  int64_t line_floats() const { return line_bytes / 4; }
  /// Multiply-adds that must not depend on each other to keep the units busy: a power of two.
  int64_t multiply_adds_in_flight() const;
};

/// A name, or the path of a file ("x.toml", or anything with a slash). E::bad_option with the list of known targets,
/// E::bad_file with the file's first mistake.
TargetInfo parse_target(std::string_view name);
/// The widest instruction set that this machine runs, and besides features that f32 kernels do not use.
TargetInfo host_target();
/// The CPU's instruction sets that f32 kernels differ by; `listed_targets` has those with further features besides.
std::vector<std::string> known_targets();
std::vector<std::string> cuda_targets();
std::vector<std::string> listed_targets();
/// Of the widest vectors that code for these features may use: 64, 32 or 16.
int vector_bytes_of(const std::vector<std::string>& features);
/// Names of CPU features of this machine, as TargetInfo::features spells them.
std::vector<std::string> host_features();

}  // namespace opfuse
