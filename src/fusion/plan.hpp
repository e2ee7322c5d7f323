// The fusion plan: every candidate group with its verdict. An editable value, saved as JSON and applied again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/decline.hpp"
#include "base/fusion_margins.hpp"
#include "base/limits.hpp"
#include "fusion/ledger.hpp"
#include "fusion/patterns.hpp"
#include "fusion/price.hpp"
#include "ir/graph.hpp"

namespace opfuse {

/// A place for a Q/DQ pair.
struct QdqPoint {
  std::string point;  ///< "INPUT", "RESIDUAL_INPUT", "OUTPUT"
  std::string tensor;
  bool operator==(const QdqPoint&) const = default;
};

/// One group that could be made. Nodes and tensors are named, so that a plan outlives the graph it was made for.
struct Candidate {
  std::string id;       ///< "ConvBNReLU@/layer1/relu": stable, keyed by the node whose result it produces
  std::string pattern;  ///< "ConvBNReLU"; groups of the rule engine: "map", "epilogue", "row"
  std::string module;   ///< "FusedConvBNReLU"; rule engine: "fused_conv_add"
  std::string label;    ///< module instance, "FusedConvBNReLU__layer1_conv1"
  bool named = true;    ///< found by a named pattern, not by the rule engine
  bool apply = false;
  std::string precision = "f32";      ///< that its products are computed in: "f32", "bf16" (fusion/precision.hpp)
  std::vector<std::string> nodes;     ///< in topological order
  std::vector<std::string> epilogue;  ///< those of them that the rule engine appended to a named pattern
  std::vector<std::string> reads;     ///< tensors from outside
  std::vector<std::string> results;   ///< tensors read outside
  std::vector<std::pair<std::string, std::string>> bindings;  ///< binding -> node or tensor
  std::vector<QdqPoint> points;
  int64_t bytes_saved = 0;         ///< stores and loads of interior tensors, per inference, unknown dimensions as 1
  std::optional<Decline> decline;  ///< why not, when it was not chosen
  std::vector<std::string> notes;  ///< choices, e.g. which operand is the residual
  bool operator==(const Candidate&) const = default;
};

/// Nodes behind which no group was looked for (Limits::between_nodes); nothing that a plan says or files keep.
struct TooFar {
  std::set<int> nodes{};
  bool operator==(const TooFar&) const { return true; }
};

struct FusionPlan {
  std::string model;  ///< "xxh3:<32 hex digits>", structural hash of the graph it was made for
  std::string target;
  SymbolValues dims;                  ///< sizes that the graph's dimensions had been given; others were open
  std::vector<Candidate> candidates;  ///< in topological order of their results
  std::vector<EdgeVerdict> edges;     ///< the ledger: every producer-consumer edge
  /// Of products outside of groups, where it is not f32.
  std::map<std::string, std::string> precisions{};
  TooFar too_far{};
  bool operator==(const FusionPlan&) const = default;

  const Candidate* find(std::string_view id) const;
  /// The candidate of that id; E::unknown_name with a did-you-mean.
  Candidate& at(std::string_view id);
  std::vector<const Candidate*> applied() const;
  /// Not applied for a reason of its own: not those whose nodes a better candidate took, nor disabled ones.
  std::vector<const Candidate*> missed() const;
  std::map<std::string, int> module_counts() const;  ///< applied named modules
};

/// Reason why a group cannot be lowered for the target, from its fused node; empty when it can.
using Legality = std::function<std::optional<Decline>(const Node&)>;

/// Names of nodes.
using NodePairs = std::vector<std::pair<std::string, std::string>>;

struct PlanOptions {
  std::string target;
  Legality legal;   ///< empty: everything is legal
  Pricing price;    ///< empty: neighbours whose fusion only a price can justify stay apart
  ReadCount reads;  ///< for the ledger, as `traffic`; empty: it does not say
  Traffic traffic;
  FusionMargins margins{};        ///< what a price must save
  std::vector<std::string> only;  ///< patterns or NAME@NODE; empty: all
  std::vector<std::string> skip;
  bool rules = true;       ///< run the rule engine over what is left
  size_t max_nodes = 256;  ///< per group
  Limits limits;
  NodePairs no_fuse;                                     ///< in no group together
  NodePairs fuse;                                        ///< in one group, whatever it costs
  SymbolValues dims;                                     ///< for bytes_saved
  const std::vector<FusionPattern>* patterns = nullptr;  ///< null: the catalogue
};

/// Finds all candidates and chooses. Deterministic.
FusionPlan make_plan(const Graph& graph, const PlanOptions& options = {});

/// The ledger of a plan that was edited: its groups as they are, reasons as they would be for its target.
void refill_ledger(const Graph& graph, FusionPlan& plan, const PlanOptions& options);

/// The graph with each applied candidate as one fused node. E::stale_plan when the plan belongs to another graph
/// (unless `allow_stale`) or names nodes that do not exist; E::bad_option when edits made candidates overlap, or chose
/// a group that `legal` refuses (empty: not asked; modules that may run as several kernels never are).
Graph apply(const Graph& graph, const FusionPlan& plan, bool allow_stale = false, const Legality& legal = {});

std::string model_hash(const Graph& graph);

/// What makes groups that no named pattern made: "map", "epilogue", "row", "prologue".
const std::vector<std::string>& rule_names();

inline constexpr const char* kPlanSchema = "opfuse.plan/2";  ///< written; the schema before it is read as well
std::string to_json(const FusionPlan& plan);
FusionPlan plan_from_json(std::string_view text);  ///< E::bad_file

struct QdqSummary {
  size_t declared = 0;               ///< points of applied groups
  std::vector<std::string> tensors;  ///< distinct, in order of first mention
};
QdqSummary qdq_summary(const FusionPlan& plan);

}  // namespace opfuse
