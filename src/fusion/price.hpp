// What groups cost, as a planner asks: joined, or apart. The driver answers from the region and the target.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <variant>

#include "base/decline.hpp"
#include "ir/graph.hpp"

namespace opfuse {

struct GroupPrice {
  double microseconds = 0;          ///< predicted, of one core, the launch included; values of rank 4 dense
  double blocked_microseconds = 0;  ///< the same with their channels in blocks
  int64_t bytes = 0;                ///< operands and results, each once

  GroupPrice& operator+=(const GroupPrice& other) {
    microseconds += other.microseconds;
    blocked_microseconds += other.blocked_microseconds;
    bytes += other.bytes;
    return *this;
  }
  GroupPrice times(double n) const {
    return {n * microseconds, n * blocked_microseconds, static_cast<int64_t>(n * static_cast<double>(bytes))};
  }
  bool operator==(const GroupPrice&) const = default;
};

/// The price of a fused node as one launch, or why it cannot be one.
using Pricing = std::function<std::variant<GroupPrice, Decline>(const Node&)>;

/// By operand, how often a node reads each of its elements: what makes the operand inside is computed as often, unless
/// the kernel keeps it. Axes that the coordinates do not mention share a read. Nothing: no region is made of the node.
using OperandReads = std::vector<std::optional<double>>;
using ReadCount = std::function<OperandReads(const Node& node)>;

/// Microseconds that a launch and so many bytes take, at the rate of the level that holds `of` bytes.
using Traffic = std::function<double(int64_t bytes, int64_t of)>;

/// Both forms of an edge.
struct PricePair {
  GroupPrice apart;
  std::optional<GroupPrice> joined;        ///< nothing: it cannot be one launch
  std::optional<GroupPrice> at_best = {};  ///< then: apart without a launch and without the value between them
  double growth = 1;                       ///< elements of what is read into, for each of the value between them
  std::optional<double> recompute = {};    ///< how often each element of that value is read
  bool operator==(const PricePair&) const = default;
};

/// Fills what needs no kernel of both: growth, and where it cannot be one launch what that would save at best. A value
/// that others read too is stored all the same.
void add_bounds(PricePair& price, const Graph& graph, const Value& value, const Node& reader, const SymbolValues& dims,
                const Traffic& traffic);

}  // namespace opfuse
