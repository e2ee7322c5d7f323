#include "variant_flags.hpp"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/fail.hpp"
#include "console.hpp"
#include "ir/fix_input.hpp"

namespace opfuse::cli {
namespace {

/// Kernels that no program before the variant runs.
size_t own_kernels(const Artifact& artifact, size_t index) {
  std::set<size_t> shared, own;
  for (const ArtifactLaunch& launch : artifact.launches) shared.insert(launch.code_offset);
  for (size_t i = 0; i < index; ++i)
    for (const ArtifactLaunch& launch : artifact.variants[i].launches) shared.insert(launch.code_offset);
  for (const ArtifactLaunch& launch : artifact.variants[index].launches)
    if (!shared.contains(launch.code_offset)) own.insert(launch.code_offset);
  return own.size();
}

}  // namespace

void add_variant_flag(FlagSet& app, std::vector<std::string>& specialize) {
  app.add_option("--specialize", specialize,
                 "also compile for these sizes of open dimensions; other sizes use the general kernels (repeatable)")
      ->type_name("NAME=SIZE[,NAME=SIZE]")
      ->allow_extra_args(false);
}

std::vector<SymbolValues> read_variants(const Graph& interface, const std::vector<std::string>& specialize) {
  const std::set<std::string> known = interface.symbols();
  std::vector<SymbolValues> variants;
  for (const std::string& flag : specialize) {
    SymbolValues& sizes = variants.emplace_back();
    std::stringstream items(flag);
    for (std::string item; std::getline(items, item, ',');) {
      const auto [name, size] = split_pair(item, '=', "--specialize", "NAME=SIZE");
      if (!known.contains(name))
        throw fail(E::unknown_name, "--specialize {}: the model has no dimension '{}'", flag, name)
            .hint(known.empty() ? "all dimensions of its inputs are fixed: there is nothing to specialize"
                                : fmt::format("dimensions: {}", fmt::join(known, ", ")));
      if (!sizes.emplace(name, parse_size(size, flag)).second)
        throw fail(E::bad_option, "--specialize {}: a dimension is given twice", flag)
            .hint("--specialize batch=1,sequence=128 is one variant with both sizes");
    }
  }
  return variants;
}

DimensionFlags leave_open(DimensionFlags flags, const std::vector<SymbolValues>& variants) {
  std::set<std::string> names;
  for (const SymbolValues& sizes : variants)
    for (const auto& [name, size] : sizes) names.insert(name);
  for (const std::string& name : names) {
    for (const std::string& dim : flags.dims)
      if (dim.starts_with(name + "=") && dim != name + "=any")
        throw fail(E::bad_option, "--dim {} fixes a dimension that --specialize needs open", dim)
            .hint("leave one of the two out; --specialize leaves '" + name + "' open by itself");
    flags.dims.push_back(name + "=any");
  }
  return flags;
}

Json variants_json(const Artifact& artifact) {
  Json rows = Json::array();
  for (size_t i = 0; i < artifact.variants.size(); ++i) {
    const ArtifactVariant& variant = artifact.variants[i];
    rows.push_back({{"when", json_of(variant.when)},
                    {"stretches", variant.stretches},
                    {"launches", variant.launches.size()},
                    {"own_kernels", own_kernels(artifact, i)},
                    {"code_bytes", variant.code_bytes},
                    {"constant_bytes", variant.constant_bytes},
                    {"arena_bytes", variant.arena_bytes.text()}});
  }
  return rows;
}

Json variants_json(const Artifact& artifact, const std::vector<KernelTime>& times) {
  Json rows = variants_json(artifact);
  for (size_t i = 0; i < rows.size(); ++i) {
    double ms = 0;
    for (const KernelTime& time : times)
      if (time.variant == text_of(artifact.variants[i])) ms += time.ms;
    rows[i]["kernel_ms"] = ms;
  }
  return rows;
}

Json fixed_inputs_json(const Artifact& artifact) {
  Json fixed = Json::object();
  for (const auto& [name, value] : artifact.fixed_inputs) fixed[name] = text_of_values(value);
  return fixed;
}

void print_fixed_inputs(const Artifact& artifact) {
  for (const auto& [name, value] : artifact.fixed_inputs)
    fmt::print("  input '{}' is fixed to {}\n", name, text_of_values(value));
}

void print_variants(const Artifact& artifact) {
  for (size_t i = 0; i < artifact.variants.size(); ++i) {
    const ArtifactVariant& variant = artifact.variants[i];
    fmt::print("  variant {}: {} launches, {} kernels of its own, adds code {}, constants {}; arena {} bytes\n",
               text_of(variant), variant.launches.size(), own_kernels(artifact, i),
               human_bytes(static_cast<double>(variant.code_bytes)),
               human_bytes(static_cast<double>(variant.constant_bytes)), variant.arena_bytes.text());
  }
}

void note_variant(const Executable& executable, const Context& context) {
  const Artifact& artifact = executable.artifact();
  std::string all;
  for (const ArtifactVariant& variant : artifact.variants)
    if (!variant.stretches) all += (all.empty() ? "" : "; ") + text_of(variant);
  if (all.empty()) return;
  if (const SymbolValues sizes = context.variant(); !sizes.empty()) return note("runs the variant " + text_of(sizes));
  note("runs the kernels for all sizes; variants are for " + all);
}

}  // namespace opfuse::cli
