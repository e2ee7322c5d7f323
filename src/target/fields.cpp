// One row per field of schema 1. docs/targets.md explains them.
#include "target/fields.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace opfuse {
namespace {

constexpr const char* kCpu = "cpu";
constexpr const char* kCuda = "cuda";
constexpr double kMostBytes = 1LL << 40;

#define OPFUSE_IN(member) +[](TargetInfo& t) -> decltype(auto) { return (t.member); }

const TargetField kFields[] = {
    {"", "name", OPFUSE_IN(name)},
    {"", "kind", OPFUSE_IN(kind)},
    {"", "about", OPFUSE_IN(about)},
    {"instructions", "llvm_cpu", OPFUSE_IN(llvm_cpu), 0, 0, kCpu},
    {"instructions", "features", OPFUSE_IN(features), 0, 0, kCpu},
    {"instructions", "vector_bytes", OPFUSE_IN(vector_bytes), 16, 64, "cpu cuda"},
    {"instructions", "vector_registers", OPFUSE_IN(vector_registers), 16, 32, kCpu},
    {"instructions", "fma", OPFUSE_IN(fma), 0, 0, kCpu},
    {"core", "fma_units", OPFUSE_IN(fma_units), 1, 16, kCpu},
    {"core", "fma_latency", OPFUSE_IN(fma_latency), 1, 64, kCpu},
    {"core", "load_units", OPFUSE_IN(load_units), 1, 16, kCpu},
    {"caches", "line_bytes", OPFUSE_IN(line_bytes), 16, 4096, kCpu},
    {"caches", "l1_bytes", OPFUSE_IN(l1_bytes), 1024, kMostBytes, kCpu},
    {"caches", "l2_bytes", OPFUSE_IN(l2_bytes), 1024, kMostBytes, kCpu},
    {"caches", "l3_bytes", OPFUSE_IN(l3_bytes), 1024, kMostBytes, kCpu},
    {"rates", "memory", OPFUSE_IN(rates.memory), 0.01, 1e4, kCpu},
    {"rates", "memory_gain_per_doubling", OPFUSE_IN(rates.memory_gain_per_doubling), 1, 2, kCpu},
    {"rates", "l3_weights", OPFUSE_IN(rates.l3_weights), 0.01, 1e4, kCpu},
    {"rates", "l3_data", OPFUSE_IN(rates.l3_data), 0.01, 1e4, kCpu},
    {"rates", "maps", OPFUSE_IN(rates.maps), 0.01, 1e4, kCpu},
    {"rates", "products", OPFUSE_IN(rates.products), 0.01, 1e4, kCpu},
    {"rates", "scaled_weights", OPFUSE_IN(rates.scaled_weights), 0.01, 1e4, kCpu},
    {"launch", "cycles", OPFUSE_IN(launch.cycles), 0, 1e9, kCpu},
    {"launch", "part_cycles", OPFUSE_IN(launch.part_cycles), 0, 1e9, kCpu},
    {"launch", "part_seconds", OPFUSE_IN(launch.part_seconds), 1e-9, 1, kCpu},
    {"launch", "multiply_adds_per_second", OPFUSE_IN(launch.multiply_adds_per_second), 1e6, 1e15, kCpu},
    {"launch", "bytes_per_second", OPFUSE_IN(launch.bytes_per_second), 1e6, 1e15, kCpu},
    {"costs", "simple", OPFUSE_IN(costs.simple), 0, 1e6, kCpu},
    {"costs", "division", OPFUSE_IN(costs.division), 0, 1e6, kCpu},
    {"costs", "root", OPFUSE_IN(costs.root), 0, 1e6, kCpu},
    {"costs", "function", OPFUSE_IN(costs.function), 0, 1e6, kCpu},
    {"costs", "erf", OPFUSE_IN(costs.erf), 0, 1e6, kCpu, true},
    {"costs", "power", OPFUSE_IN(costs.power), 0, 1e6, kCpu},
    {"costs", "index_division", OPFUSE_IN(costs.index_division), 0, 1e6, kCpu},
    {"costs", "access", OPFUSE_IN(costs.access), 0, 1e6, kCpu},
    {"costs", "turned", OPFUSE_IN(costs.turned), 0, 1e6, kCpu},
    {"costs", "element", OPFUSE_IN(costs.element), 0, 1e6, kCpu},
    {"costs", "point", OPFUSE_IN(costs.point), 0, 1e6, kCpu},
    {"costs", "row", OPFUSE_IN(costs.row), 0, 1e6, kCpu},
    {"costs", "second", OPFUSE_IN(costs.second), 0, 1e6, kCpu, true},
    {"costs", "far", OPFUSE_IN(costs.far), 0, 1e6, kCpu, true},
    {"costs", "in_row", OPFUSE_IN(costs.in_row), 1, 100, kCpu, true},
    {"costs", "tile_vectors", OPFUSE_IN(costs.tile_vectors), 1, 64, kCpu, true},
    {"costs", "read_share", OPFUSE_IN(costs.read_share), 0, 2, kCpu, true},
    {"kernels", "overlap_loss", OPFUSE_IN(kernels.overlap_loss), 0, 1, kCpu, true},
    {"kernels", "exposed_weights", OPFUSE_IN(kernels.exposed_weights), 0, 1, kCpu, true},
    {"kernels", "winograd_step", OPFUSE_IN(kernels.winograd_step), 0, 1e6, kCpu, true},
    {"kernels", "winograd_tile", OPFUSE_IN(kernels.winograd_tile), 0, 1e6, kCpu, true},
    {"kernels", "winograd_transform", OPFUSE_IN(kernels.winograd_transform), 0, 1e6, kCpu, true},
    {"kernels", "winograd_weights", OPFUSE_IN(kernels.winograd_weights), 0, 1e6, kCpu, true},
    {"kernels", "winograd_idle", OPFUSE_IN(kernels.winograd_idle), 0, 1, kCpu, true},
    {"kernels", "chain_switch", OPFUSE_IN(kernels.chain_switch), 0, 1, kCpu, true},
    {"kernels", "chain_function", OPFUSE_IN(kernels.chain_function), 0, 1e6, kCpu, true},
    {"kernels", "scaled_vector", OPFUSE_IN(kernels.scaled_vector), 0, 1e6, kCpu, true},
    {"kernels", "pixel_turned", OPFUSE_IN(kernels.pixel_turned), 0, 1e6, kCpu, true},
    {"kernels", "pixel_weights", OPFUSE_IN(kernels.pixel_weights), 0, 1e6, kCpu, true},
    {"kernels", "scattered", OPFUSE_IN(kernels.scattered), 0, 1e6, kCpu, true},
    {"kernels", "scattered_in_set", OPFUSE_IN(kernels.scattered_in_set), 0, 1e6, kCpu, true},
    {"kernels", "step", OPFUSE_IN(kernels.step), 0, 1e6, kCpu, true},
    {"kernels", "load_slack", OPFUSE_IN(kernels.load_slack), 0, 100, kCpu, true},
    {"kernels", "weights_vector", OPFUSE_IN(kernels.weights_vector), 0, 1e6, kCpu, true},
    {"kernels", "ragged_blocks", OPFUSE_IN(kernels.ragged_blocks), 1, 100, kCpu, true},
    {"kernels", "overlap_few", OPFUSE_IN(kernels.overlap_few), 0, 1e6, kCpu, true},
    {"kernels", "overlap_many", OPFUSE_IN(kernels.overlap_many), 0, 1e6, kCpu, true},
    {"kernels", "rounded_vector", OPFUSE_IN(kernels.rounded_vector), 0, 1e6, kCpu, true},
    {"kernels", "looks_ahead", OPFUSE_IN(kernels.looks_ahead), 1, 1e9, kCpu, true},
    {"kernels", "attention_step", OPFUSE_IN(kernels.attention_step), 0, 1e6, kCpu, true},
    {"kernels", "winograd_launch", OPFUSE_IN(kernels.winograd_launch), 0, 1e9, kCpu, true},
    {"kernels", "without_tiles", OPFUSE_IN(kernels.without_tiles), 1, 1e6, kCpu, true},
    {"kernels", "reached", OPFUSE_IN(kernels.reached), 0.01, 1, kCpu, true},
    {"kernels", "straddling", OPFUSE_IN(kernels.straddling), 1, 1e6, kCpu, true},
    {"kernels", "phased_lanes", OPFUSE_IN(kernels.phased_lanes), 1, 1e6, kCpu, true},
    {"kernels", "pixel_weights_near", OPFUSE_IN(kernels.pixel_weights_near), 0, 1e6, kCpu, true},
    {"kernels", "pixel_lines", OPFUSE_IN(kernels.pixel_lines), 0, 1e9, kCpu, true},
    {"kernels", "paired_extras", OPFUSE_IN(kernels.paired_extras), -1, 1, kCpu, true},
    {"kernels", "algorithm_gain", OPFUSE_IN(kernels.algorithm_gain), 0, 1, kCpu, true},
    {"kernels", "copy_gain", OPFUSE_IN(kernels.copy_gain), 0, 1, kCpu, true},
    {"kernels", "turned_rate", OPFUSE_IN(kernels.turned_rate), 0.01, 1e4, kCpu, true},
    {"kernels", "open_tile", OPFUSE_IN(kernels.open_tile), 0, 100, kCpu, true},
    {"kernels", "packed_rows", OPFUSE_IN(kernels.packed_rows), 1, 1e9, kCpu, true},
    {"parts", "missing", OPFUSE_IN(parts.missing), 0, 100, kCpu, true},
    {"parts", "odd", OPFUSE_IN(parts.odd), 0, 100, kCpu, true},
    {"parts", "each", OPFUSE_IN(parts.each), 0, 100, kCpu, true},
    {"parts", "grain_of_many", OPFUSE_IN(parts.grain_of_many), 0.01, 1, kCpu, true},
    {"parts", "chain_each", OPFUSE_IN(parts.chain_each), 0, 100, kCpu, true},
    {"parts", "chain_odd", OPFUSE_IN(parts.chain_odd), 0, 100, kCpu, true},
    {"parts", "chain_late", OPFUSE_IN(parts.chain_late), 0, 100, kCpu, true},
    {"parts", "pixel_uneven", OPFUSE_IN(parts.pixel_uneven), 0, 100, kCpu, true},
    {"shares", "weights", OPFUSE_IN(shares.weights), 0, 1, kCpu, true},
    {"shares", "l3_weights", OPFUSE_IN(shares.l3_weights), 0, 1, kCpu, true},
    {"shares", "pass", OPFUSE_IN(shares.pass), 0, 1, kCpu, true},
    {"shares", "copies", OPFUSE_IN(shares.copies), 0, 1, kCpu, true},
    {"shares", "packed_weights", OPFUSE_IN(shares.packed_weights), 0, 1, kCpu, true},
    {"shares", "attention", OPFUSE_IN(shares.attention), 0, 1, kCpu, true},
    {"shares", "attention_blocks", OPFUSE_IN(shares.attention_blocks), 0, 1, kCpu, true},
    {"shares", "attention_whole", OPFUSE_IN(shares.attention_whole), 0, 1, kCpu, true},
    {"shares", "winograd_data", OPFUSE_IN(shares.winograd_data), 0, 1, kCpu, true},
    {"shares", "winograd_part", OPFUSE_IN(shares.winograd_part), 0, 1, kCpu, true},
    {"shares", "winograd_l3", OPFUSE_IN(shares.winograd_l3), 0, 1, kCpu, true},
    {"shares", "chain_band", OPFUSE_IN(shares.chain_band), 0, 1, kCpu, true},
    {"shares", "pixels", OPFUSE_IN(shares.pixels), 0, 1, kCpu, true},
    {"shares", "group", OPFUSE_IN(shares.group), 0, 1, kCpu, true},
    {"margins", "fusion", OPFUSE_IN(margins.fusion), 0, 1},
    {"margins", "prologue", OPFUSE_IN(margins.prologue), 0, 1},
    {"gpu", "arch", OPFUSE_IN(cuda_arch), 0, 0, kCuda},
    {"gpu", "emulated", OPFUSE_IN(emulated)},
    {"gpu", "multiprocessors", OPFUSE_IN(multiprocessors), 1, 4096, kCuda},
    {"gpu", "shared_kilobytes", OPFUSE_IN(shared_kilobytes), 16, 4096, kCuda},
    {"gpu", "launch_seconds", OPFUSE_IN(gpu_launch_seconds), 0, 1, kCuda},
    {"gpu", "bytes_per_second", OPFUSE_IN(gpu_bytes_per_second), 1e6, 1e15, kCuda},
};

#undef OPFUSE_IN

struct Printer {
  std::string operator()(const std::string& text) const { return fmt::format("\"{}\"", text); }
  std::string operator()(const std::vector<std::string>& list) const {
    return list.empty() ? "[]" : fmt::format("[\"{}\"]", fmt::join(list, "\", \""));
  }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int value) const { return std::to_string(value); }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return fmt::format("{}", value); }
};

}  // namespace

std::span<const TargetField> target_fields() { return kFields; }

bool TargetField::allowed(std::string_view kind) const {
  const std::string_view in = section;
  if (in.empty()) return true;
  if (in == "margins") return kind == kCpu || kind == kCuda;  // who has prices
  if (kind == kCuda) return in == "gpu" || (in == "instructions" && std::string_view(key) == "vector_bytes");
  return kind == kCpu && in != "gpu";
}

std::string text_of(const TargetField& field, const TargetInfo& target) {
  TargetInfo copy = target;
  return std::visit([&](auto in) { return Printer()(in(copy)); }, field.access);
}

std::string toml_of(const TargetInfo& target) {
  std::string text = "schema = 1\n";
  std::string_view section;
  for (const TargetField& field : kFields) {
    if (!field.allowed(target.kind)) continue;
    if (field.section != section) text += fmt::format("\n[{}]\n", section = field.section);
    text += fmt::format("{} = {}\n", field.key, text_of(field, target));
  }
  return text;
}

}  // namespace opfuse
