#include "cuda/vector_body.hpp"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace

std::string copy_text(DType dtype, int64_t vector, const std::string& to, const std::string& from) {
  const std::string type = vector_type(dtype, vector);
  return fmt::format("*reinterpret_cast<{}*>({}) = *reinterpret_cast<const {}*>({});", type, to, type, from);
}

std::string store_text(Kernel& k, DType dtype, int64_t vector, const std::string& to, const std::string& from) {
  if (vector_type(dtype, vector) != "uint4") return copy_text(dtype, vector, to, from);
  k.use("store_16");
  return fmt::format("store_16({}, {});", to, from);
}

std::map<int, std::string> load_vectors(StageText& s, const StageText::Point& point, int axis, int64_t vector,
                                        const std::set<int>& reads, const std::string& count) {
  std::map<int, std::string> given;
  Kernel& k = s.k;
  for (int r : reads) {
    const Read& read = s.stage.reads[static_cast<size_t>(r)];
    const Operand operand = s.operand_of(read);
    const ParamLayout& layout = k.layouts()[static_cast<size_t>(read.index)];
    if (s.guarded(r)) continue;
    if (step_along(read.map, layout, axis) == 0) {
      given[r] = k.declare(value_type(operand.dtype), fmt::format("r{}", r), s.load(r, point));
      continue;
    }
    if (!fits_vector(operand.dtype, vector) || !lies_together(read.map, layout, s.axis_count(), axis, vector)) continue;
    const std::string name = k.fresh(fmt::format("r{}", r));
    k.line(fmt::format("alignas(16) {} {}[{}];", memory_type(operand.dtype), name, count));
    const std::string from = fmt::format("{} + {}", operand.name, k.text_of(s.offset(operand, read.map, point)));
    k.line(copy_text(operand.dtype, vector, name, from));
    given[r] = from_memory(k, operand.dtype, name + "[j]");
  }
  return given;
}

void emit_vector(StageText& s, const StageText::Point& point, int axis, int64_t vector, const std::set<int>& known,
                 const CompletePoint& complete, const std::string& count, const StoreVector& store) {
  Kernel& k = s.k;
  std::set<int> used;
  for (const StageOutput& o : s.stage.outputs) used.merge(reads_used(o.value));
  for (int r : known) used.erase(r);
  StageText::Point element = point;
  element.given = load_vectors(s, point, axis, vector, used, count);
  std::vector<std::string> outputs;
  for (const StageOutput& o : s.stage.outputs) {
    outputs.push_back(k.fresh("out"));
    k.line(fmt::format("alignas(16) {} {}[{}];", memory_type(o.dtype), outputs.back(), count));
  }
  k.line("#pragma unroll");
  k.open(fmt::format("for (int j = 0; j < {}; ++j)", count));
  complete(element, "j");
  auto& at = element.env[static_cast<size_t>(axis)];
  at = at + Kernel::local("j");
  ExprText value = s.at(element);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const StageOutput& o = s.stage.outputs[i];
    k.line(fmt::format("{}[j] = {};", outputs[i], to_memory(k, o.dtype, value.emit(o.value, o.dtype))));
  }
  k.close();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const StageOutput& o = s.stage.outputs[i];
    if (store) {
      k.line(store(outputs[i]));
      continue;
    }
    const Operand operand = k.operand(o.param);
    const std::string to = fmt::format("{} + {}", operand.name, k.text_of(s.offset(operand, o.map, point)));
    k.line(store_text(k, o.dtype, vector, to, outputs[i]));
  }
}

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

bool multiple_of(const Dim& d, int64_t factor) {
  if (d.is_constant()) return d.value() % factor == 0;
  const auto divides = [&](const Dim& x) { return multiple_of(x, factor); };
  if (d.op() == DimOp::mul) return std::any_of(d.args().begin(), d.args().end(), divides);
  return d.op() == DimOp::add && std::all_of(d.args().begin(), d.args().end(), divides);
}

/// Axes are taken as wholes, so that what two coordinates add up to counts; a part of one, (a / div) % mod, stands at
/// multiples of its own step.
bool lies_together(const IndexMap& map, const ParamLayout& l, int axes, int axis, int64_t vector) {
  std::vector<Dim> steps(static_cast<size_t>(axes), Dim(0));
  for (size_t d = 0; d < map.dims.size(); ++d) {
    const Dim stride = stride_of(l, d);
    if (map.dims[d].dynamic || !multiple_of(map.dims[d].offset * stride, vector)) return false;
    for (const IndexTerm& t : map.dims[d].terms) {
      const Dim step = t.coef * stride;
      if (t.div == Dim(1) && t.mod == Dim(0))
        steps[static_cast<size_t>(t.axis)] = steps[static_cast<size_t>(t.axis)] + step;
      else if (t.axis == axis || !multiple_of(step, vector))
        return false;
    }
  }
  for (int other = 0; other < axes; ++other)
    if (other != axis && !multiple_of(steps[static_cast<size_t>(other)], vector)) return false;
  return steps[static_cast<size_t>(axis)] == Dim(1);
}

}  // namespace opfuse::cuda
