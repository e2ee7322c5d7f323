// opfuse: an operator-fusion compiler for neural-network inference.
//
//   opfuse::Model model = opfuse::Model::load("resnet.onnx");
//   opfuse::Target cpu = opfuse::Target::host();
//   opfuse::Plan plan = opfuse::plan(model, cpu);
//   opfuse::Fused fused = opfuse::apply(model, plan);
//   opfuse::Executable exe = opfuse::compile(fused.model, cpu, {.dims = {{"batch", 1}}});
//   opfuse::Context ctx = exe.create_context();
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "opfuse/diff.hpp"
#include "opfuse/remark.hpp"
#include "opfuse/runtime.hpp"

namespace opfuse {

class Graph;
struct FusionPlan;
struct TargetInfo;

struct LoadOptions {
  /// Inputs that never change: shapes, axes, repeats. They become constants of the model; the arrays are copied. A run
  /// may still bind them, to the same values.
  std::map<std::string, ArrayView> fixed_inputs{};
  std::map<std::string, int64_t> limits{};  ///< by name, `opfuse options` lists them: {"unrolled_nodes", 20000}
  /// Operators of custom domains as expressions, "swish(x, b) = x * sigmoid(b * x)", or paths of files of them.
  std::vector<std::string> operators{};
};

/// A model: a graph read from ONNX. Copies are deep.
class OPFUSE_API Model {
 public:
  /// Reads an ONNX file (weights stay in the mapped file). Throws E01xx errors.
  static Model load(const std::string& path, const LoadOptions& options = {});
  /// A built-in model ("resnet50", "mobilenet_v2", ...). Throws unknown_name.
  static Model zoo(const std::string& name);
  static Model from_graph(Graph graph);

  /// Writes standard ONNX. Fused groups become model-local functions of domain dev.opfuse, named after the module, or
  /// their original operators in place (`flatten`), which runtimes without functions load too. The file that the model
  /// was read from is not replaced: bad_option.
  void save(const std::string& path, bool flatten = false) const;
  /// The graph as text (.fir).
  std::string text() const;
  std::vector<TensorInfo> inputs() const;
  std::vector<TensorInfo> outputs() const;
  /// Fused groups of named patterns by module: {"FusedConvBNReLU": 32, ...}; empty before opfuse::apply.
  std::map<std::string, int> modules() const;

  const Graph& graph() const;
  Graph& graph();
  Model(const Model& other);
  Model& operator=(const Model& other);
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

 private:
  Model();
  std::unique_ptr<Graph> graph_;
};

/// What to generate code for: "host", "cpu:avx512", "cpu:avx2", "cpu:baseline", "cuda:sm_90" and the like.
class OPFUSE_API Target {
 public:
  static Target host();
  static Target named(const std::string& name);  ///< throws bad_option
  const std::string& name() const;
  const TargetInfo& info() const { return *info_; }

 private:
  std::shared_ptr<const TargetInfo> info_;
};

/// One candidate group of a plan. `apply` may be edited before opfuse::apply.
struct PlanEntry {
  std::string id;      ///< "ConvBNReLU@relu_node": stable
  std::string rule;    ///< pattern or rule
  std::string module;  ///< "FusedConvBNReLU"
  std::string anchor;  ///< the group's output node
  std::vector<std::string> nodes;
  bool apply = true;
  std::string precision = "f32";  ///< of its products; may be edited as `apply` may
  std::string reason;             ///< why not applied; empty when applied
  double bytes_saved = 0;
};

/// All candidate groups with verdicts: a value, editable, saved as JSON.
class OPFUSE_API Plan {
 public:
  const std::vector<PlanEntry>& entries() const { return entries_; }
  /// Candidates that are not applied, with their reasons.
  std::vector<PlanEntry> missed() const;
  /// The candidate of that id ("Pattern@node"); throws unknown_name.
  PlanEntry& at(const std::string& id);
  /// Applied modules by name: {"FusedConvBNReLU": 32, ...}.
  std::map<std::string, int> modules() const;
  std::string json() const;
  static Plan from_json(const std::string& text, const Model& model);  ///< throws stale_plan
  const FusionPlan& value() const { return *value_; }

 private:
  std::vector<PlanEntry> entries_;
  std::shared_ptr<FusionPlan> value_;
  friend struct PlanAccess;
};

/// A fusion pattern of your own. It claims nodes before the catalogue; docs/fusion.md has the two small languages.
struct PatternSpec {
  std::string name;                             ///< "ConvSigmoid"
  std::string topology;                         ///< "conv:conv -> [bn:batch_norm] -> act:sigmoid"
  std::vector<std::string> where{};             ///< "conv.in_channels % 16 == 0 and conv.group == 1"
  std::map<std::string, std::string> points{};  ///< Q/DQ points: "INPUT" -> "conv"
  std::string module{}, doc{}, root{};          ///< defaults: "Fused" + name, "", the first binding
  int priority = 1;                             ///< the catalogue has 0
};

struct PlanRequest {
  std::vector<std::string> only{};  ///< patterns, or "Pattern@node"; empty: all
  std::vector<std::string> skip{};
  bool rules = true;  ///< the rule engine for what no named pattern claims
  std::vector<PatternSpec> patterns{};
  std::vector<std::string> pattern_files{};  ///< TOML; throws bad_file with line and column
  size_t max_group_nodes = 256;              ///< rules end a group there; edges then say too_large
  std::map<std::string, int64_t> dims{};     ///< sizes that dimensions have from now on; others stay open
  std::vector<std::string> precision{};      ///< of products: "bf16", "f32@node" (docs/precision.md); empty: f32
  std::vector<std::pair<std::string, std::string>> no_fuse{};  ///< nodes to keep apart, in groups and in launches
  /// Nodes that share a group although it is predicted slower; throws bad_option where it is not legal.
  std::vector<std::pair<std::string, std::string>> fuse{};
  std::map<std::string, int64_t> limits{};  ///< of planning, as in LoadOptions: {"priced_operands", 1000}
};

struct Fused {
  Model model;                     ///< one fused node per applied group
  std::vector<std::string> notes;  ///< what was converted, skipped or split, and why
};

/// Makes a plan; nothing is applied yet. The model is cleaned, recomposed and converted on a copy.
OPFUSE_API Plan plan(const Model& model, const Target& target, const PlanRequest& request = {});
/// Applies the enabled entries. Errors of a single group disable that group and are noted.
OPFUSE_API Fused apply(const Model& model, const Plan& plan);

struct ExplainRequest {
  std::string node{};  ///< everything about this node: its group, all patterns tried there, its edges; empty: all nodes
  bool passed = true;  ///< with the groups that were made
  bool missed = true;  ///< with what was not fused, most bytes first
  std::vector<PatternSpec> patterns{};  ///< beside the catalogue, as in the plan's request
  std::vector<std::string> pattern_files{};
};

/// Why the plan fuses what it fuses, and why not the rest. Throws unknown_name for a node that does not exist,
/// stale_plan when the plan belongs to another model.
OPFUSE_API std::vector<Remark> explain(const Model& model, const Plan& plan, const ExplainRequest& request = {});
/// Fusions that the second plan lost and gained, by names of nodes: of versions of a model, of options, of targets. The
/// order of nodes plays no part. Throws bad_option where the two have no edge in common.
OPFUSE_API PlanDiff diff(const Plan& first, const Plan& second);
/// Names of the patterns of these TOML files, then of the catalogue, in the order that decides between matches of equal
/// size.
OPFUSE_API std::vector<std::string> pattern_names(const std::vector<std::string>& files = {});

struct CompileOptions {
  std::map<std::string, int64_t> dims{};            ///< values of symbolic dimensions; others stay unbound
  std::map<std::string, ArrayView> fixed_inputs{};  ///< as in LoadOptions, for models that loaded without them
  /// Sizes of dimensions that stay open for which the model is compiled once more: each entry is a variant, which runs
  /// where the bound inputs have all of its sizes (the first that fits); other sizes run the kernels for all sizes.
  std::vector<std::map<std::string, int64_t>> specialize{};
  int compile_threads = 0;  ///< of the compiler; 0: all available
  bool cache = true;        ///< disk cache of kernels
  std::string emit_dir{};   ///< write one readable file per kernel here
  bool emit_llvm = false, emit_assembly = false, emit_cuda = false;
  bool allow_reference = false;        ///< operators without a kernel run in the interpreter, noted in every report
  bool fused = true;                   ///< false: one launch per operator of the model as it was read ("unfused")
  PlanRequest plan{};                  ///< what to plan with, for a model that has no groups yet
  bool exact = false;                  ///< no Winograd, tables, rows as digits (docs/accuracy.md)
  std::vector<std::string> no_pass{};  ///< shaping passes to leave out: "join-chains" ... (docs/fusion.md, Shaping)
  bool chains = true;                  ///< false: `no_pass` of the joins and of the loop over images
  int threads = 0;                     ///< of the runs, for the choice of algorithms; 0: all available
  bool measure = false;                ///< algorithms, and groups of the rules, by timing the whole model with each
  std::vector<std::string> timings{};  ///< with `measure`: files of times; the first is written; empty: the cache's
  std::vector<std::string> algorithm{}, no_algorithm{};  ///< NAME[@NODE]: forced, forbidden
  std::optional<int64_t> max_weight_growth{};  ///< bytes that transformed weights may add; see docs/accuracy.md
  std::optional<int64_t> workspace{};          ///< bytes of scratch per thread of algorithms and fused stages
  bool least_memory = false;                   ///< 16-bit weights stay so in memory, docs/precision.md
  std::map<std::string, int64_t> limits{};     ///< as in LoadOptions: "arena_comparisons"
  std::string dump_dir{};                      ///< write the graph after each pass that changes it here
  std::function<void(const std::string& step, size_t done, size_t total)> progress{};
};

/// Compiles a model (fused or not) for a target. Throws E03xx, E05xx.
OPFUSE_API Executable compile(const Model& model, const Target& target, const CompileOptions& options = {});

/// "0.2.0"
OPFUSE_API std::string version();

}  // namespace opfuse
