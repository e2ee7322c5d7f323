#include "codegen/cuda/vector_body.hpp"

#include <fmt/format.h>

namespace opfuse::cuda {
namespace {

/// Stride in memory of logical dimension `dim`.
Dim stride_of(const ParamLayout& l, size_t dim) {
  for (size_t i = 0; i < l.layout.order.size(); ++i)
    if (l.layout.order[i] == static_cast<int>(dim)) return l.strides[i];
  return 0;
}

std::string vector_type(DType dtype, int64_t vector) {
  const auto bytes = static_cast<int64_t>(byte_size(dtype)) * vector;
  return bytes == 16 ? "uint4" : bytes == 8 ? "uint2" : "uint1";
}

bool fits_vector(DType dtype, int64_t vector) {
  const auto bytes = static_cast<int64_t>(byte_size(dtype)) * vector;
  return bytes == 16 || bytes == 8 || bytes == 4;
}

class VectorBody {
 public:
  VectorBody(StageText& s, const StageText::Point& point, int axis, int64_t vector)
      : s_(s), k_(s.k), point_(point), axis_(axis), vector_(vector) {}

  void load_operands() {
    std::set<int> used;
    for (const StageOutput& o : s_.stage.outputs) used.merge(reads_used(o.value));
    for (int r : used) {
      const Read& read = s_.stage.reads[static_cast<size_t>(r)];
      const Operand operand = s_.operand_of(read);
      const ParamLayout& layout = k_.layouts()[static_cast<size_t>(read.index)];
      if (s_.guarded(r)) continue;
      if (step_along(read.map, layout, axis_) == 0) {
        given_[r] = k_.declare(value_type(operand.dtype), fmt::format("r{}", r), s_.load(r, point_));
        continue;
      }
      if (!fits_vector(operand.dtype, vector_) || !lies_together(read.map, layout, s_.domain(), axis_, vector_))
        continue;
      const std::string name = k_.fresh(fmt::format("r{}", r)), type = vector_type(operand.dtype, vector_);
      k_.line(fmt::format("alignas(16) {} {}[kVector];", memory_type(operand.dtype), name));
      k_.line(fmt::format("*reinterpret_cast<{}*>({}) = *reinterpret_cast<const {}*>({} + {});", type, name, type,
                          operand.name, k_.text_of(s_.offset(operand, read.map, point_))));
      given_[r] = from_memory(k_, operand.dtype, name + "[j]");
    }
  }

  void compute(const std::function<std::vector<std::string>(const std::string&)>& results) {
    for (const StageOutput& o : s_.stage.outputs) {
      outputs_.push_back(k_.fresh("out"));
      k_.line(fmt::format("alignas(16) {} {}[kVector];", memory_type(o.dtype), outputs_.back()));
    }
    k_.line("#pragma unroll");
    k_.open("for (int j = 0; j < kVector; ++j)");
    StageText::Point element = point_;
    element.given = given_;
    element.results = results("j");
    auto& at = element.env[static_cast<size_t>(axis_)];
    at = at + Kernel::local("j");
    ExprText value = s_.at(element);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const StageOutput& o = s_.stage.outputs[i];
      k_.line(fmt::format("{}[j] = {};", outputs_[i], to_memory(k_, o.dtype, value.emit(o.value, o.dtype))));
    }
    k_.close();
  }

  void store() {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const StageOutput& o = s_.stage.outputs[i];
      const Operand operand = k_.operand(o.param);
      const std::string type = vector_type(o.dtype, vector_);
      k_.line(fmt::format("*reinterpret_cast<{}*>({} + {}) = *reinterpret_cast<const {}*>({});", type, operand.name,
                          k_.text_of(s_.offset(operand, o.map, point_)), type, outputs_[i]));
    }
  }

 private:
  StageText& s_;
  Kernel& k_;
  const StageText::Point& point_;
  int axis_;
  int64_t vector_;
  std::map<int, std::string> given_;
  std::vector<std::string> outputs_;
};

}  // namespace

std::optional<int64_t> step_along(const IndexMap& map, const ParamLayout& l, int axis) {
  int64_t step = 0;
  for (size_t d = 0; d < map.dims.size(); ++d) {
    if (map.dims[d].dynamic) {
      bool uses = false;
      map.dims[d].dynamic.visit(
          [&](const Expr& x) { uses |= x.op() == ExprOp::read || (x.op() == ExprOp::coord && x.index() == axis); });
      if (uses) return std::nullopt;
    }
    for (const IndexTerm& t : map.dims[d].terms) {
      if (t.axis != axis) continue;
      const auto coef = t.coef.constant(), stride = stride_of(l, d).constant();
      if (!coef || !stride || !(t.div == Dim(1)) || !(t.mod == Dim(0))) return std::nullopt;
      step += *coef * *stride;
    }
  }
  return step;
}

bool lies_together(const IndexMap& map, const ParamLayout& l, int axes, int axis, int64_t vector) {
  if (step_along(map, l, axis) != 1) return false;
  for (int other = 0; other < axes; ++other)
    if (other != axis) {
      const auto step = step_along(map, l, other);
      if (!step || *step % vector) return false;
    }
  for (size_t d = 0; d < map.dims.size(); ++d) {
    const auto offset = map.dims[d].offset.constant(), stride = stride_of(l, d).constant();
    if (map.dims[d].dynamic || !offset || (*offset && (!stride || *offset * *stride % vector))) return false;
    for (const IndexTerm& t : map.dims[d].terms)
      if (!(t.div == Dim(1)) || !(t.mod == Dim(0))) return false;
  }
  return true;
}

void emit_vector(StageText& s, const StageText::Point& point, int axis, int64_t vector,
                 const std::function<std::vector<std::string>(const std::string&)>& results) {
  VectorBody body(s, point, axis, vector);
  body.load_operands();
  body.compute(results);
  body.store();
}

}  // namespace opfuse::cuda
