#include "driver/variants.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "driver/pipeline.hpp"
#include "ir/dim_constraints.hpp"
#include "runtime/artifact.hpp"

namespace opfuse {
namespace {

void check_open(const Graph& graph, const SymbolValues& sizes) {
  const std::set<std::string> open = graph.symbols();
  for (const auto& [symbol, size] : sizes) {
    if (size < 0) throw fail(E::bad_dimension, "specialize {}: a size cannot be negative", text_of(sizes));
    if (open.contains(symbol)) continue;
    const std::vector<std::string> names(open.begin(), open.end());
    throw fail(E::unknown_name, "specialize {}: the model has no open dimension '{}'", text_of(sizes), symbol)
        .hint(names.empty()
                  ? "all of its dimensions are fixed: there is nothing to specialize"
                  : fmt::format("{}; open dimensions: {}", did_you_mean(symbol, names), fmt::join(names, ", ")));
  }
}

void check(const Graph& graph, const TargetInfo& target, const std::vector<SymbolValues>& all) {
  if (!target.traits.has_variants)
    throw fail(E::bad_option, "specialize: variants for given sizes are made on cpu targets, not on {}", target.name);
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].empty()) throw fail(E::bad_option, "specialize: a variant without sizes").hint("name one, e.g. batch=1");
    check_open(graph, all[i]);
    if (std::find(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i), all[i]) !=
        all.begin() + static_cast<std::ptrdiff_t>(i))
      throw fail(E::bad_option, "specialize {}: given twice", text_of(all[i]));
  }
}

Graph bound(const Graph& graph, const SymbolValues& sizes) {
  Graph copy = graph.clone();
  bind_fused(copy, sizes);
  return copy;
}

}  // namespace

std::vector<Variant> make_variants(const Graph& fused, const TargetInfo& target,
                                   const std::vector<SymbolValues>& sizes) {
  std::vector<Variant> variants;
  if (!sizes.empty()) check(fused, target, sizes);
  for (const SymbolValues& when : sizes) variants.push_back({when, std::make_shared<Graph>(bound(fused, when)), {}});
  if (!target.traits.stretches_itself && any_stretches(dim_constraints(fused)))
    variants.push_back({{}, std::make_shared<Graph>(fused.clone()), {}, true});
  return variants;
}

}  // namespace opfuse
