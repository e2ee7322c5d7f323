// What the ledger says of an edge beside its two prices: how much larger the consumer is than the value, how often it
// reads each element, and what a kernel of both could save where there is none.
#include <algorithm>

#include "fusion/neighbours.hpp"
#include "ir/outline.hpp"

namespace opfuse {

namespace {

double elements_of(const Value& value, const SymbolValues& dims) {
  const auto each = static_cast<double>(std::max<size_t>(byte_size(value.type.dtype), 1));
  return static_cast<double>(value_bytes(value, dims)) / each;
}

}  // namespace

std::optional<double> Neighbours::reads_of(const Nodes& nodes, const Value& value) {
  Counted& unit = counted_units_[{nodes.front(), nodes.size()}];
  if (unit.nodes != nodes) {  // all edges into a unit are counted at once
    unit = {nodes, {}};
    const OutlinedCopy copy = outline_copy(graph(), nodes, {fused_op(), "trial", "trial"});
    const OperandReads reads = planner_.options.reads(*copy.node);
    size_t at = 0;
    for (const Value* read : external_reads(nodes))
      if (!read->is_constant() || !belongs_in_body(*read)) unit.reads[read] = reads.at(at++);
  }
  const auto found = unit.reads.find(&value);
  return found == unit.reads.end() ? std::nullopt : found->second;
}

void Neighbours::add_factors(PricePair& price, const Value& value, Node& reader) {
  if (planner_.options.reads) {
    price.recompute = reads_of(unit_of(&reader), value);
    if (!price.recompute)
      price.recompute = reads_of({&reader}, value);  // by itself: of a module of several kernels too
  }
  add_bounds(price, graph(), value, reader, planner_.options.dims, planner_.options.traffic);
}

void add_bounds(PricePair& price, const Graph& graph, const Value& value, const Node& reader, const SymbolValues& dims,
                const Traffic& traffic) {
  const double elements = elements_of(value, dims), result = elements_of(*reader.outputs.front(), dims);
  if (elements > 0) price.growth = result / elements;
  if (price.joined || !traffic) return;
  const bool stays = value.uses.size() > 1 || graph.is_output(&value);
  GroupPrice best = price.apart;
  const int64_t saved = std::min(best.bytes, (stays ? 1 : 2) * value_bytes(value, dims));
  const double time = traffic(saved, best.bytes);
  best.bytes -= saved;
  best.microseconds = std::max(0.0, best.microseconds - time);
  best.blocked_microseconds = std::max(0.0, best.blocked_microseconds - time);
  price.at_best = best;
}

}  // namespace opfuse
