// Two groups become one launch: find, legal, gain, outline. One driver for every kind of pair; a kind is a `Join`.
//
//     .. -- first -- t -- second -- y          nobody else needs t
//     .. -- [first, second] -- y
//
// The joined group is named after both. Refusals leave the graph as it was.
#pragma once

#include <variant>

#include "ir/outline.hpp"
#include "shape/shaping_passes.hpp"

namespace opfuse {

struct JoinPair {
  Node *first = nullptr, *second = nullptr;  ///< in topological order
};

struct Join {
  std::string name, summary;  ///< of the pass
  /// The pair that `node` is in, asked for every node in order. A pair with a node of an earlier one is left out.
  std::optional<JoinPair> (*find)(Node& node) = nullptr;
  /// Why a pair cannot be joined whatever the target is.
  std::optional<Decline> (*unfit)(const JoinPair& pair) = nullptr;
  /// Why a pair is not joined as things are; null: it always is.
  std::optional<Decline> (*unwanted)(const JoinPair& pair, const ShapeContext& context) = nullptr;
  /// What stands for the first group in names; null: its own name and pattern.
  const char* first_name = nullptr;
  /// What is joined instead of the second, made for the trial; null: the second itself.
  Node* (*stand_in)(Graph& graph, const JoinPair& pair, const ShapeContext& context) = nullptr;
  /// Lets readers of the second read the stand-in, once the pair is accepted.
  void (*settle)(Graph& graph, Node* second, Node* stand_in) = nullptr;
};

ShapingPass joining(const Join& join);

/// Why the result of the first must be stored although a pair is joined over it: a graph output, or other readers.
std::optional<Decline> read_elsewhere(const JoinPair& pair);

/// The nodes as one group of single operators, or the reason that `refuses` has against it, and nothing changed.
std::variant<Node*, Decline> outline_unless(Graph& graph, const std::vector<Node*>& nodes, const Outline& how,
                                            const Legality& refuses);

/// The convolution that a node is or that a group starts with; null: neither.
const Node* leading_convolution(const Node& node);

}  // namespace opfuse
