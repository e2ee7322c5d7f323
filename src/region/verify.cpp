// Structural invariants of a region: every reference exists, ranks agree, stages only look back, every
// output parameter is stored. Bounds of reads depend on values and are checked by the interpreter.
#include <fmt/format.h>

#include "base/fail.hpp"
#include "expr/visit_each.hpp"
#include "region/computed_indices.hpp"
#include "region/index_map.hpp"
#include "region/names.hpp"

namespace opfuse {
namespace {

class Verifier {
 public:
  explicit Verifier(const Region& region) : region_(region) {}

  std::vector<std::string> problems() {
    std::vector<char> stored(region_.params.size(), 0);
    for (size_t s = 0; s < region_.stages.size(); ++s) {
      stage_ = s;
      check_stage(region_.stages[s]);
      for (const StageOutput& output : region_.stages[s].outputs)
        if (output.param >= 0 && output.param < static_cast<int>(stored.size())) stored[output.param] = 1;
    }
    for (size_t i = 0; i < stored.size(); ++i)
      if (region_.params[i].role == ParamRole::output && !stored[i])
        found_.push_back(fmt::format("output parameter {} is never stored", i));
    if (region_.stages.empty()) found_.emplace_back("a region has at least one stage");
    return found_;
  }

 private:
  const Region& region_;
  size_t stage_ = 0;
  std::vector<std::string> found_;

  template <class... Args>
  void require(bool ok, fmt::format_string<Args...> format, Args&&... args) {
    if (!ok) found_.push_back(fmt::format("stage {}: {}", stage_, fmt::format(format, std::forward<Args>(args)...)));
  }

  void check_stage(const Stage& stage) {
    require(!stage.outputs.empty(), "no outputs");
    const bool plain = stage.anchor == Anchor::map || stage.anchor == Anchor::scatter;
    require(stage.reductions.empty() == plain, "anchor {} with {} reductions", name_of(stage.anchor),
            stage.reductions.size());
    if (stage.anchor == Anchor::contraction)
      for (const Reduction& r : stage.reductions)
        require(r.kind == ReduceKind::sum, "a contraction reduces by sums alone");
    for (size_t i = 0; i < stage.reads.size(); ++i) check_read(stage, i);
    for (size_t k = 0; k < stage.reductions.size(); ++k) check_expr(stage, stage.reductions[k].value, k, true);
    std::vector<const Expr*> values;
    for (const StageOutput& output : stage.outputs) values.push_back(&output.value);
    check_exprs(stage, values, stage.reductions.size(), false);
    for (const StageOutput& output : stage.outputs) check_output(stage, output);
  }

  void check_read(const Stage& stage, size_t i) {
    const Read& read = stage.reads[i];
    const Shape* shape = nullptr;
    if (read.stage < 0) {
      const bool exists = read.index >= 0 && read.index < static_cast<int>(region_.params.size());
      require(exists, "read {} of parameter {}, which does not exist", i, read.index);
      if (exists) {
        require(region_.params[read.index].role != ParamRole::output, "read {} of output parameter {}", i, read.index);
        shape = &region_.params[read.index].type.shape;
      }
    } else {
      require(read.stage < static_cast<int>(stage_), "read {} of stage {}, which is not earlier", i, read.stage);
      if (read.stage < static_cast<int>(stage_)) {
        const auto& outputs = region_.stages[read.stage].outputs;
        const bool local =
            read.index >= 0 && read.index < static_cast<int>(outputs.size()) && outputs[read.index].param < 0;
        require(local, "read {} of stage {}.{}, which is not a tile-local output", i, read.stage, read.index);
        if (local) shape = &outputs[read.index].shape;
      }
    }
    if (shape != nullptr)
      require(shape->rank() == read.map.dims.size(), "read {} has {} indices for {}", i, read.map.dims.size(),
              shape->text());
    check_map(stage, read.map, true);
  }

  void check_map(const Stage& stage, const IndexMap& map, bool reduce_axes) {
    const int axes = static_cast<int>(stage.domain.size() + (reduce_axes ? stage.reduce.size() : 0));
    for (const IndexExpr& dim : map.dims) {
      for (const IndexTerm& term : dim.terms) {
        require(term.axis >= 0 && term.axis < axes, "index of axis {}, there are {}", term.axis, axes);
        require(!(term.div == Dim(0)), "division by zero in an index");
      }
      if (!dim.dynamic) continue;
      require(reads_at_computed(stage.anchor), "a dynamic index in a {} stage", name_of(stage.anchor));
      require(is_integer(dim.dynamic.dtype()), "a dynamic index of type {}", name_of(dim.dynamic.dtype()));
      check_expr(stage, dim.dynamic, 0, reduce_axes);
    }
  }

  void check_expr(const Stage& stage, const Expr& expr, size_t results, bool reduce_axes) {
    const Expr* one = &expr;
    check_exprs(stage, {&one, 1}, results, reduce_axes);
  }

  void check_exprs(const Stage& stage, std::span<const Expr* const> exprs, size_t results, bool reduce_axes) {
    for (const Expr* expr : exprs) require(static_cast<bool>(*expr), "an empty expression");
    const int axes = static_cast<int>(stage.domain.size() + (reduce_axes ? stage.reduce.size() : 0));
    visit_each(exprs, [&](const Expr& e) {
      switch (e.op()) {
        case ExprOp::read:
        case ExprOp::in_bounds:
          check_read_leaf(stage, e);
          break;
        case ExprOp::coord:
          require(e.index() >= 0 && e.index() < axes, "coord({}), there are {} axes", e.index(), axes);
          break;
        case ExprOp::result:
          require(e.index() >= 0 && e.index() < static_cast<int>(results), "result({}) before it is known", e.index());
          break;
        default:
          break;
      }
    });
  }

  void check_read_leaf(const Stage& stage, const Expr& e) {
    const bool exists = e.index() >= 0 && e.index() < static_cast<int>(stage.reads.size());
    require(exists, "an expression uses read {}, which does not exist", e.index());
    if (!exists || e.op() == ExprOp::in_bounds) return;
    const Read& read = stage.reads[e.index()];
    DType dtype = e.dtype();
    if (read.stage < 0 && read.index >= 0 && read.index < static_cast<int>(region_.params.size()))
      dtype = region_.params[read.index].type.dtype;
    require(dtype == e.dtype(), "read {} is {} and used as {}", e.index(), name_of(dtype), name_of(e.dtype()));
  }

  void check_output(const Stage& stage, const StageOutput& output) {
    check_map(stage, output.map, false);
    if (stage.anchor != Anchor::scatter)
      require(!output.combine && !has_dynamic(output.map), "an output of a {} stage is scattered",
              name_of(stage.anchor));
    require(output.map.dims.size() == output.shape.rank(), "an output of shape {} with {} indices", output.shape.text(),
            output.map.dims.size());
    if (output.value)
      require(output.value.dtype() == output.dtype || output.value.weak(), "an output of type {} stores {}",
              name_of(output.dtype), name_of(output.value.dtype()));
    if (output.param < 0) {
      require(output.map == IndexMap::identity(stage.domain.size()) && output.shape == Shape(stage.domain),
              "a tile-local output is stored at its domain");
      return;
    }
    const bool exists = output.param < static_cast<int>(region_.params.size());
    require(exists, "output to parameter {}, which does not exist", output.param);
    if (!exists) return;
    const Param& param = region_.params[output.param];
    require(param.role == ParamRole::output, "output to {} parameter {}", name_of(param.role), output.param);
    require(param.type == TensorType{output.dtype, output.shape}, "output {}{} to parameter {} of type {}",
            name_of(output.dtype), output.shape.text(), output.param, param.type.text());
  }
};

}  // namespace

void verify(const Region& region) {
  const std::vector<std::string> problems = Verifier(region).problems();
  if (problems.empty()) return;
  std::string text;
  for (const std::string& problem : problems) text += "\n  " + problem;
  throw fail(E::internal, "a region is not well formed:{}\n{}", text, print(region));
}

}  // namespace opfuse
