// The machinery that the lower_<family>.cpp files share. A group's nodes are walked in order; each value
// of the group is, while lowering,
//   param    an operand of the group, read through an index map
//   lazy     the result of an elementwise operator or of a movement of elements: no code of its own,
//            its expression is built at whatever coordinates a reader asks for (prologues)
//   forward  the result of a stage: an expression over that stage's domain, with the map that takes the
//            domain to the value's coordinates (epilogues extend it in place)
// A stage that reads another stage's forward value makes it a tile-local output.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <unordered_map>

#include "region/index_map.hpp"
#include "region/lower.hpp"
#include "region/read_sets.hpp"

namespace opfuse {

class Lowering;

/// The coordinate of an operand's dimension of extent `own` that broadcasts along an axis of extent `whole`: 0 where it
/// is 1, the axis where they are equal. Where that is open: the axis, or with `stretches` the axis modulo `own`.
IndexExpr broadcast_index(const Dim& own, const Dim& whole, int axis, bool stretches);
/// The same of all dimensions, aligned at the end.
IndexMap broadcast_map(const Shape& shape, const Shape& domain, bool stretches);

/// How one operator is lowered; a row of a family's table. Elementwise operators need no row.
struct LowerRule {
  std::string_view op;
  /// Opens a stage and defines the node's results in it (anchors).
  void (*anchor)(Lowering&, const Node&) = nullptr;
  /// The value of result `result` at coordinates map(axes of the open stage).
  Expr (*pull)(Lowering&, const Node&, size_t result, const IndexMap& map) = nullptr;
  /// Coordinates of the result as a function of the coordinates of operand 0, when the movement can be
  /// applied to the store of a stage's result instead.
  std::optional<IndexMap> (*push)(Lowering&, const Node&) = nullptr;
  /// `pull` reads operand 0 at the result's own coordinates, so it may extend a stage's result in place.
  bool pointwise = false;
  /// Says that this node moves elements (`pull`) although the rule has an anchor for others.
  bool (*moves)(const Lowering&, const Node&) = nullptr;
};

std::span<const LowerRule> conv_rules();
std::span<const LowerRule> gemm_rules();
std::span<const LowerRule> matmul_integer_rules();
std::span<const LowerRule> pool_rules();
std::span<const LowerRule> reduce_rules();
std::span<const LowerRule> move_rules();
std::span<const LowerRule> resize_rules();
std::span<const LowerRule> gather_rules();
std::span<const LowerRule> norm_rules();
std::span<const LowerRule> statistics_rules();
std::span<const LowerRule> conv_transpose_rules();
std::span<const LowerRule> einsum_rules();
std::span<const LowerRule> scatter_rules();
std::span<const LowerRule> shape_rules();
std::span<const LowerRule> quantize_rules();
std::span<const LowerRule> grid_rules();
std::span<const LowerRule> sort_rules();
std::span<const LowerRule> recurrent_rules();
const LowerRule* find_rule(std::string_view op);

/// A contraction whose result only the epilogue of another one reads, over the same axes and with the same data, is
/// another sum of that one: act(x A) * (x B) is one loop nest.
void join_sums(Region& region);

/// Carries a Decline out of the depth of a lowering; lower_group returns it.
struct DeclineSignal {
  Decline decline;
};
[[noreturn]] void decline(std::string code, std::string message, const Node& node,
                          std::vector<std::string> evidence = {});

/// Row stages that read each other's results of the same row become one stage.
void merge_rows(Region& region);

/// Removes stages without outputs, reads and parameters that nothing uses (left by attempts that became something
/// else).
void prune(LoweredGroup& lowered);

/// Attributes by name, absent ones by default.
class AttrView {
 public:
  explicit AttrView(const Node& node) : map_(node.attr_map()) {}
  int64_t integer(std::string_view name, int64_t fallback) const;
  double real(std::string_view name, double fallback) const;
  bool flag(std::string_view name, bool fallback = false) const { return integer(name, fallback) != 0; }
  std::string text(std::string_view name, std::string fallback = {}) const;
  std::vector<int64_t> integers(std::string_view name) const;
  bool has(std::string_view name) const { return find(map_, name) != nullptr; }

 private:
  AttrMap map_;
};

class Lowering {
 public:
  Lowering(const Node& group, bool stretches);
  LoweredGroup run();

  /// Starts a new stage; reads and definitions go there.
  void open(Anchor anchor, const std::vector<Dim>& domain, std::vector<Dim> reduce);
  bool is_open() const { return open_; }
  Stage& stage() { return region_.stages.back(); }
  std::vector<Dim> extents() const;  ///< of the open stage's axes: domain, then reduce
  /// Whether open dimensions that may be 1 are read as such.
  bool stretches() const { return stretches_; }

  /// The value at coordinates map(axes), as an expression of the open stage.
  Expr pull(const Value* value, const IndexMap& map);
  /// The same where the coordinates are inside the value, `fill` outside.
  Expr pull_guarded(const Value* value, const IndexMap& map, const Expr& fill, const Node& reader);
  /// The same where the operand may move elements: whether a coordinate is inside is what `inside` says.
  Expr pull_where(const Value* value, const IndexMap& map, const Expr& inside, const Expr& fill, const Node& reader);
  /// The two parts of that: where it is inside, and what it is there.
  std::pair<Expr, Expr> pull_inside(const Value* value, const IndexMap& map, const Expr& inside, const Node& reader);
  /// A read of a constant made while lowering; `make` is called when its bytes are wanted.
  Expr pull_made(const TensorType& type, std::function<Tensor()> make, const IndexMap& map,
                 const Value* from = nullptr);
  /// Appends a reduction; its result as an expression.
  Expr reduce(ReduceKind kind, Expr value);
  /// The value is `expr` at the open stage's domain.
  void define(const Value* value, Expr expr);
  /// The same where the stage stores the value at map(domain); `clipped`: some of these may be outside of it.
  void define_at(const Value* value, Expr expr, IndexMap map, bool clipped);
  /// The elements map(domain) of the value are `expr`; other stages make the others, or a scatter stage combines them
  /// with what earlier ones made. Such a value can only be a result of the group.
  void define_part(const Value* value, Expr expr, IndexMap map, std::optional<ReduceKind> combine = {});
  /// A value that exists only between stages of this lowering.
  const Value* internal(TensorType type);
  /// The node needs no more lowering (folded into an earlier one).
  void mark_done(const Node* node) { done_.push_back(node); }

  /// The constant behind a value, or null.
  const Tensor* constant_of(const Value* value) const;
  /// All elements of a constant operand; declines when it is not constant.
  std::vector<int64_t> integers_of(const Node& node, size_t input) const;
  /// The same for positions that may follow from shapes.
  std::vector<Dim> positions_of(const Node& node, size_t input) const;
  /// The node that makes a value where it is read, inside the group; null: an operand, or what a stage made.
  const Node* lazy_node(const Value* value) const;
  /// Rows of made constants as the doubles they were rounded from, by region parameter.
  std::map<int, std::vector<double>>& real_constants() { return real_constants_; }
  /// From now on quantising is that of docs/accuracy.md, "Requantised": some product is a sum of codes.
  void set_requantises() { requantises_ = true; }
  bool requantises() const { return requantises_; }
  /// The only reader of a value inside the group when nothing else reads it, else null.
  const Node* only_reader(const Value* value) const;

 private:
  struct Part {
    int stage;
    Expr expr;
    IndexMap map;
    std::optional<ReduceKind> combine;
  };
  struct Def {
    enum Kind { param, lazy, forward, alias, pieces } kind = param;
    int index = -1;                ///< param: index of the region parameter (-1: none yet); forward: stage
    const Value* outer = nullptr;  ///< param: the operand; alias: the value meant
    const Tensor* constant = nullptr;
    const Node* node = nullptr;  ///< lazy
    size_t result = 0;
    Expr expr;                ///< forward, over the stage's domain
    IndexMap map;             ///< forward: domain -> coordinates of the value
    bool clipped = false;     ///< forward: some of these are outside of it
    std::vector<Part> parts;  ///< pieces: each made by a stage of its own
    TensorType type;
  };
  struct Pulled {
    const Value* value;
    IndexMap map;
    Expr expr;
  };

  const Node& group_;
  bool stretches_;
  Region region_;
  std::vector<LoweredOperand> operands_;
  std::unordered_map<const Value*, Def> defs_;  ///< looked up, never iterated
  std::vector<const Node*> done_;
  std::vector<const Value*> results_;  ///< of all bodies walked
  std::vector<std::unique_ptr<Value>> internals_;
  bool open_ = false;
  bool requantises_ = false;
  std::map<int, std::vector<double>> real_constants_;
  std::unordered_multimap<uint64_t, Pulled> pulled_;  ///< of the open stage, as the next four; by a hash of the map
  struct Broadcast {
    Shape own, whole;
    IndexMap map, composed;
  };
  std::optional<Broadcast> broadcast_;  ///< the last one that was composed: neighbours mostly ask for the same
  ReadSets read_sets_;
  std::vector<int> places_;                                ///< place_of, as far as it was asked
  std::unordered_map<uint64_t, std::vector<int>> firsts_;  ///< the numbers in it, by a hash of the map; looked up only

  void walk(const Graph& body);
  void lower_node(const Node& node);
  void bind_alias(const Value* inner, const Value* outer);
  const Value* resolve(const Value* value) const;
  Def& def_of(const Value* value);
  bool reads_open_stage(const Node& node) const;
  bool push_elementwise(const Node& node);
  bool push_movement(const Node& node, const LowerRule& rule);
  Expr pull_new(const Value* value, Def& def, const IndexMap& map);
  Expr pull_elementwise(const Node& node, const IndexMap& map, const Shape& shape);
  Expr pull_forward(const Value* value, Def& def, const IndexMap& map);
  const Shape& shape_read_by(const Read& read) const;
  std::vector<int> unguarded_reads(const Expr& value);
  std::vector<int> reads_outside(const Expr& value, int guard);
  std::optional<int> guard_of(const Expr& value, const TensorType& type, const IndexMap& map);
  int place_of(int read);
  void number_places();
  const IndexMap& broadcast_to(const Shape& own, const Shape& whole, const IndexMap& map);
  std::optional<int> first_with(const IndexMap& map, const Shape& shape);
  Expr add_read(Read read, DType dtype);
  void require_computable(const IndexMap& map);
  int param_of(Def& def);
  int add_param(ParamRole role, const TensorType& type, LoweredOperand operand);
  void store_results();
};

}  // namespace opfuse
