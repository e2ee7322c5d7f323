// Runs a region by its definition: loops over domain and reduce axes, in doubles (or typed). Domain axes
// that no reduction depends on (the elements of a softmax row) share one run of the reductions. Stage
// outputs that stay tile-local are materialised whole for the stages that read them.
#include <cmath>

#include "base/fail.hpp"
#include "base/parallel.hpp"
#include "ops/checks.hpp"
#include "region/dependence.hpp"
#include "region/reductions.hpp"
#include "region/tape.hpp"
#include "tensor/number.hpp"

namespace opfuse {
namespace {

struct Term {
  int64_t coef, div, mod;
  int axis;
};

/// One tensor dimension of an index map with numbers in place of symbols.
struct DimIndex {
  std::vector<Term> terms;
  int64_t offset = 0, extent = 0, stride = 0;
  Tape dynamic;
};

using MapIndex = std::vector<DimIndex>;

MapIndex bind(const IndexMap& map, const std::vector<int64_t>& sizes, const SymbolValues& symbols) {
  MapIndex index;
  OPFUSE_CHECK(map.dims.size() == sizes.size(), "an index map of rank {} for a tensor of rank {}", map.dims.size(),
               sizes.size());
  int64_t stride = 1;
  for (int64_t size : sizes) stride *= size;
  for (size_t i = 0; i < sizes.size(); ++i) {
    DimIndex dim;
    for (const IndexTerm& t : map.dims[i].terms)
      dim.terms.push_back({t.coef.evaluate(symbols), t.div.evaluate(symbols), t.mod.evaluate(symbols), t.axis});
    dim.offset = map.dims[i].offset.evaluate(symbols);
    dim.extent = sizes[i];
    stride = sizes[i] == 0 ? 0 : stride / sizes[i];
    dim.stride = stride;
    if (map.dims[i].dynamic) dim.dynamic = Tape(map.dims[i].dynamic, symbols);
    index.push_back(std::move(dim));
  }
  return index;
}

struct BoundRead {
  const Tensor* tensor = nullptr;
  DType dtype = DType::f32;  ///< declared
  MapIndex index;
};

struct BoundOutput {
  Tensor* tensor = nullptr;
  Tape value;
  MapIndex index;
  DType dtype = DType::f32;  ///< declared
  std::optional<ReduceKind> combine;
  bool clipped = false;
};

struct BoundStage {
  bool scatter = false;
  std::vector<int64_t> extents;  ///< domain then reduce
  size_t domain_rank = 0;
  int64_t reduce_points = 1;
  std::vector<int> outer, inner;  ///< domain axes that reductions depend on, and the others
  int64_t outer_points = 1, inner_points = 1;
  std::vector<BoundRead> reads;
  std::vector<std::pair<ReduceKind, Tape>> reductions;
  std::vector<DType> reduction_types;
  std::vector<BoundOutput> outputs;
};

ScalarValue element(const Tensor& tensor, DType dtype, int64_t offset) {
  if (is_float(dtype)) return {dtype, tensor.real(offset), 0};
  return {dtype, 0, tensor.integer(offset)};
}

/// One thread's walk over a part of a stage's domain.
class Walker final : public TapeLeaves {
 public:
  Walker(const BoundStage& stage, Precision precision)
      : stage_(stage), precision_(precision), coords_(stage.extents.size()), slots_(4) {}

  void run_outer(int64_t point) {
    set_axes(stage_.outer, point);
    results_.clear();
    for (size_t k = 0; k < stage_.reductions.size(); ++k) reduce(k);
    for (int64_t i = 0; i < stage_.inner_points; ++i) {
      set_axes(stage_.inner, i);
      for (const BoundOutput& output : stage_.outputs) store(output);
    }
  }

  bool load(int index, ScalarValue& value) override {
    const BoundRead& read = stage_.reads[index];
    int64_t offset = 0;
    if (!locate(read.index, offset)) {
      value = {read.dtype, 0, 0};
      return false;
    }
    value = element(*read.tensor, read.dtype, offset);
    return true;
  }
  bool in_bounds(int index) override {
    int64_t offset = 0;
    return locate(stage_.reads[index].index, offset);
  }
  int64_t coord(int axis) override { return coords_[axis]; }
  ScalarValue result(int index) override { return results_[index]; }

 private:
  const BoundStage& stage_;
  Precision precision_;
  std::vector<int64_t> coords_;
  std::vector<ScalarValue> results_;
  std::vector<TapeSlots> slots_;  ///< by nesting depth of dynamic indices
  size_t depth_ = 0;

  void set_axes(const std::vector<int>& axes, int64_t point) {
    for (size_t i = axes.size(); i-- > 0;) {
      coords_[axes[i]] = point % stage_.extents[axes[i]];
      point /= stage_.extents[axes[i]];
    }
  }

  ScalarValue run(const Tape& tape) {
    if (depth_ >= slots_.size()) slots_.resize(depth_ + 4);
    ++depth_;
    // Slots of a deeper level may be added while this level's are in use: keep them apart by value.
    TapeSlots mine = std::move(slots_[depth_ - 1]);
    const ScalarValue value = tape.run(*this, mine, precision_);
    slots_[--depth_] = std::move(mine);
    return value;
  }

  bool locate(const MapIndex& index, int64_t& offset) {
    offset = 0;
    for (const DimIndex& dim : index) {
      int64_t at = dim.offset;
      for (const Term& t : dim.terms) {
        int64_t c = coords_[t.axis];
        if (t.div != 1) c /= t.div;
        if (t.mod != 0) c %= t.mod;
        at += t.coef * c;
      }
      if (!dim.dynamic.empty()) at = run(dim.dynamic).as_integer();
      if (at < 0 || at >= dim.extent) return false;
      offset += at * dim.stride;
    }
    return true;
  }

  ScalarValue combine(ReduceKind kind, const ScalarValue& a, const ScalarValue& b) {
    if (kind == ReduceKind::sum && is_float(a.dtype)) {
      double sum = a.real + b.real;
      if (precision_ == Precision::typed && a.dtype != DType::f64) sum = static_cast<float>(sum);
      return {a.dtype, sum, 0};
    }
    return evaluate_op(combiner(kind), a.dtype, {a, b}, precision_);
  }

  void reduce(size_t k) {
    const auto& [kind, tape] = stage_.reductions[k];
    ScalarValue total = identity_of(kind, stage_.reduction_types[k]);
    for (size_t axis = stage_.domain_rank; axis < coords_.size(); ++axis) coords_[axis] = 0;
    for (int64_t point = 0; point < stage_.reduce_points; ++point) {
      const ScalarValue value = run(tape);
      total = point == 0 && kind != ReduceKind::sum ? value : combine(kind, total, value);
      for (size_t axis = coords_.size(); axis-- > stage_.domain_rank;) {
        if (++coords_[axis] < stage_.extents[axis]) break;
        coords_[axis] = 0;
      }
    }
    results_.push_back(total);
  }

  void store(const BoundOutput& output) {
    int64_t offset = 0;
    if (!locate(output.index, offset)) {
      OPFUSE_CHECK(output.clipped, "a stage stores outside its result");
      return;
    }
    ScalarValue value = run(output.value);
    if (output.combine) value = combine(*output.combine, element(*output.tensor, output.dtype, offset), value);
    if (is_float(output.tensor->dtype()))
      output.tensor->set_real(offset, value.as_real());
    else
      set_wrapped(*output.tensor, offset, value.as_integer());
  }
};

Tensor result_tensor(DType dtype, const Shape& shape, const SymbolValues& symbols, Precision precision) {
  if (precision == Precision::exact && is_float(dtype)) dtype = DType::f64;
  return Tensor(dtype, shape.evaluate(symbols));
}

class RegionRun {
 public:
  RegionRun(const Region& region, const std::vector<Tensor>& params, const SymbolValues& symbols, Precision precision)
      : region_(region), symbols_(symbols), precision_(precision), params_(params) {
    params_.resize(region.params.size());
    for (size_t i = 0; i < params_.size(); ++i) {
      if (region.params[i].role != ParamRole::output) continue;
      const bool given = params_[i].dtype() != DType::unknown;
      params_[i] = given ? params_[i].clone()
                         : result_tensor(region.params[i].type.dtype, region.params[i].type.shape, symbols, precision);
    }
  }

  std::vector<Tensor> run() {
    for (const Stage& stage : region_.stages) run_stage(stage);
    std::vector<Tensor> results;
    for (size_t i = 0; i < params_.size(); ++i)
      if (region_.params[i].role == ParamRole::output) results.push_back(params_[i]);
    return results;
  }

 private:
  const Region& region_;
  const SymbolValues& symbols_;
  Precision precision_;
  std::vector<Tensor> params_;
  std::vector<std::vector<Tensor>> locals_;  ///< by stage, by output

  BoundRead bind_read(const Read& read) {
    BoundRead bound;
    if (read.stage < 0) {
      bound.tensor = &params_[read.index];
      bound.dtype = region_.params[read.index].type.dtype;
      OPFUSE_CHECK(bound.tensor->dtype() != DType::unknown, "parameter {} has no tensor", read.index);
    } else {
      bound.tensor = &locals_[read.stage][read.index];
      bound.dtype = region_.stages[read.stage].outputs[read.index].dtype;
    }
    bound.index = bind(read.map, bound.tensor->sizes(), symbols_);
    return bound;
  }

  BoundStage bind_stage(const Stage& stage, std::vector<Tensor>& locals) {
    BoundStage bound;
    bound.scatter = stage.anchor == Anchor::scatter;
    bound.domain_rank = stage.domain.size();
    for (const Dim& dim : stage.domain) bound.extents.push_back(dim.evaluate(symbols_));
    for (const Dim& dim : stage.reduce) {
      bound.extents.push_back(dim.evaluate(symbols_));
      bound.reduce_points *= bound.extents.back();
    }
    std::set<int> used;
    for (const Reduction& reduction : stage.reductions) {
      used.merge(axes_of(stage, reduction.value));
      bound.reductions.emplace_back(reduction.kind, Tape(reduction.value, symbols_));
      bound.reduction_types.push_back(reduction.value.dtype());
    }
    for (size_t axis = 0; axis < bound.domain_rank; ++axis) {
      const bool outer = stage.reductions.empty() || used.contains(static_cast<int>(axis));
      (outer ? bound.outer : bound.inner).push_back(static_cast<int>(axis));
      (outer ? bound.outer_points : bound.inner_points) *= bound.extents[axis];
    }
    for (const Read& read : stage.reads) bound.reads.push_back(bind_read(read));
    for (size_t i = 0; i < stage.outputs.size(); ++i) {
      const StageOutput& output = stage.outputs[i];
      Tensor* tensor = output.param >= 0 ? &params_[output.param] : &locals[i];
      bound.outputs.push_back({tensor, Tape(output.value, symbols_), bind(output.map, tensor->sizes(), symbols_),
                               output.dtype, output.combine, output.clipped || bound.scatter});
    }
    return bound;
  }

  void run_stage(const Stage& stage) {
    std::vector<Tensor> locals(stage.outputs.size());
    for (size_t i = 0; i < locals.size(); ++i)
      if (stage.outputs[i].param < 0)
        locals[i] = result_tensor(stage.outputs[i].dtype, stage.outputs[i].shape, symbols_, precision_);
    BoundStage bound = bind_stage(stage, locals);
    // nothing is stored: not even sums of rows, whose reads may be of empty tensors
    if (bound.inner_points == 0) bound.outer_points = 0;
    // a scatter's points are taken in order
    const int64_t chunk = std::max<int64_t>(1, bound.scatter ? bound.outer_points : bound.outer_points / 256);
    parallel_for((bound.outer_points + chunk - 1) / chunk, [&](int64_t c) {
      Walker walker(bound, precision_);
      const int64_t end = std::min(bound.outer_points, (c + 1) * chunk);
      for (int64_t point = c * chunk; point < end; ++point) walker.run_outer(point);
    });
    locals_.push_back(std::move(locals));
  }
};

}  // namespace

std::vector<Tensor> interpret(const Region& region, const std::vector<Tensor>& params, const SymbolValues& symbols,
                              Precision precision) {
  return RegionRun(region, params, symbols, precision).run();
}

}  // namespace opfuse
