// Leaves, addresses, reductions' arithmetic and stores shared by the skeletons.
#include "cuda/stage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/fail.hpp"
#include "region/dependence.hpp"

namespace opfuse::cuda {
namespace {

bool real_sum(const Reduction& r) { return r.kind == ReduceKind::sum && is_float(r.value.dtype()); }

}  // namespace

StageText::StageText(Kernel& kernel, size_t index)
    : k(kernel), stage(kernel.region.stages.at(index)), guarded_(guarded_reads(stage)), extents_(axis_extents(stage)) {}

Dim StageText::elements(const std::vector<int>& axes) const {
  Dim count = 1;
  for (int axis : axes) count = count * extent(axis);
  return count;
}

void StageText::decode(const Dim& flat, const std::vector<int>& axes, Env& env) {
  Dim rest = flat;
  std::vector<int> moving;
  for (int axis : axes) {
    if (extent(axis) == Dim(1))
      env[static_cast<size_t>(axis)] = 0;
    else
      moving.push_back(axis);
  }
  for (size_t i = moving.size(); i-- > 0;) {
    const int axis = moving[i];
    const std::string name = fmt::format("a{}", axis);
    const std::string size = k.text_of(extent(axis)), from = k.text_of(rest);
    const auto wrap = [&](const std::string& t) { return t.find(' ') == std::string::npos ? t : "(" + t + ")"; };
    Dim& at = env[static_cast<size_t>(axis)];
    if (i == 0) {
      at = k.declare_index(name, from);
      break;
    }
    at = k.declare_index(name, fmt::format("{} % {}", wrap(from), wrap(size)));
    if (i == 1) {
      env[static_cast<size_t>(moving[0])] =
          k.declare_index(fmt::format("a{}", moving[0]), fmt::format("{} / {}", wrap(from), wrap(size)));
      break;
    }
    rest = k.declare_index("rest", fmt::format("{} / {}", wrap(from), wrap(size)));
  }
}

Dim StageText::coordinate(const IndexExpr& index, const Point& point) {
  if (index.dynamic) {
    ExprText inner = at(point);
    return Kernel::local(k.declare(k.index_type(), "at", inner.emit(index.dynamic, DType::i64)));
  }
  Dim sum = index.offset;
  for (const IndexTerm& t : index.terms) {
    Dim value = point.env.at(static_cast<size_t>(t.axis));
    if (!(t.div == Dim(1))) value = floor_div(value, t.div);
    if (!(t.mod == Dim(0))) value = mod(value, t.mod);
    sum = sum + value * t.coef;
  }
  return sum;
}

Dim StageText::offset(const Operand& operand, const IndexMap& map, const Point& point) {
  Dim sum = 0;
  for (size_t d = 0; d < map.dims.size(); ++d) sum = sum + coordinate(map.dims[d], point) * operand.strides[d];
  return sum;
}

std::string StageText::inside(const Operand& operand, const IndexMap& map, const Point& point) {
  std::string all;
  const auto both = [&](const std::string& condition) { all += (all.empty() ? "" : " && ") + condition; };
  for (size_t d = 0; d < map.dims.size(); ++d) {
    const CoordinateRange bounds = coordinate_range(map.dims[d], extents_);
    const auto size = operand.shape[d].constant();
    const bool low = bounds.low && *bounds.low >= 0, high = bounds.high && size && *bounds.high < *size;
    if (low && high) continue;
    const std::string at = k.text_of(coordinate(map.dims[d], point));
    if (!low) both(at + " >= 0");
    if (!high) both(at + " < " + k.text_of(operand.shape[d]));
  }
  return all.empty() ? "true" : "(" + all + ")";
}

std::string StageText::element(int read, const Point& point) {
  const Read& r = stage.reads.at(static_cast<size_t>(read));
  const Operand operand = operand_of(r);
  return fmt::format("{}[{}]", operand.name, k.text_of(offset(operand, r.map, point)));
}

std::string StageText::load(int read, const Point& point, const std::string& guard) {
  const DType dtype = operand_of(stage.reads.at(static_cast<size_t>(read))).dtype;
  const std::string value = from_memory(k, dtype, element(read, point));
  return guard.empty() || guard == "true" ? value : fmt::format("({} ? {} : {})", guard, value, literal(dtype, 0, 0));
}

ExprText StageText::at(const Point& point) {
  return {k, guarded_, [this, point](const Expr& leaf, const std::string& guard) -> std::string {
            const int i = leaf.index();
            switch (leaf.op()) {
              case ExprOp::result:
                return point.results.at(static_cast<size_t>(i));
              case ExprOp::coord: {
                const Dim& axis = point.env.at(static_cast<size_t>(i));
                if (axis.is_constant()) return fmt::format("{}LL", axis.value());
                return axis.op() == DimOp::symbol ? fmt::format("(long long){}", k.text_of(axis))
                                                  : fmt::format("(long long)({})", k.text_of(axis));
              }
              case ExprOp::in_bounds: {
                const Read& r = stage.reads[static_cast<size_t>(i)];
                return inside(operand_of(r), r.map, point);
              }
              default:
                break;
            }
            OPFUSE_CHECK(leaf.op() == ExprOp::read, "leaf {}", leaf.text());
            const auto it = point.given.find(i);
            return it != point.given.end() ? it->second : load(i, point, guard);
          }};
}

void StageText::store_outputs(const Point& point) {
  const auto clipped =
      std::find_if(stage.outputs.begin(), stage.outputs.end(), [](const StageOutput& o) { return o.clipped; });
  if (clipped == stage.outputs.end()) return store_inside(point);
  k.open("if (" + inside(k.operand(clipped->param), clipped->map, point) + ")");
  store_inside(point);
  k.close();
}

void StageText::store_inside(const Point& point) {
  ExprText values = at(point);
  // all values before the first store: an output may lie in an operand's buffer
  std::vector<std::string> stores;
  for (const StageOutput& o : stage.outputs) {
    const Operand operand = k.operand(o.param);
    std::string value = to_memory(k, o.dtype, values.emit(o.value, o.dtype));
    if (stage.outputs.size() > 1) value = k.declare(memory_type(o.dtype), "out", value);
    if (value.front() == '(' && value.back() == ')' && value.find('(', 1) == std::string::npos)
      value = value.substr(1, value.size() - 2);
    stores.push_back(fmt::format("{}[{}] = {};", operand.name, k.text_of(offset(operand, o.map, point)), value));
  }
  for (const std::string& store : stores) k.line(store);
}

std::string identity_text(const Reduction& r) {
  const DType dtype = r.value.dtype();
  const double inf = std::numeric_limits<double>::infinity();
  switch (r.kind) {
    case ReduceKind::sum:
      return literal(dtype, 0, 0);
    case ReduceKind::product:
      return literal(dtype, 1, 1);
    default:
      break;
  }
  const bool max = r.kind == ReduceKind::max;
  if (is_float(dtype)) return literal(dtype, max ? -inf : inf, 0);
  if (dtype == DType::boolean) return max ? "false" : "true";
  const unsigned bits = static_cast<unsigned>(bit_size(dtype));
  if (is_signed(dtype)) {
    const int64_t low = bits == 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (bits - 1));
    return literal(dtype, 0, max ? low : -(low + 1));
  }
  return literal(dtype, 0, max ? 0 : bits == 64 ? -1 : (int64_t{1} << bits) - 1);
}

std::string combine_text(Kernel& k, ReduceKind kind, DType dtype, const std::string& x, const std::string& y) {
  const bool real = is_float(dtype), boolean = dtype == DType::boolean;
  switch (kind) {
    case ReduceKind::sum:
    case ReduceKind::product: {
      const char* op = kind == ReduceKind::sum ? (boolean ? "||" : "+") : (boolean ? "&&" : "*");
      return real || boolean ? fmt::format("{} {} {}", x, op, y) : wrapping_text(dtype, x, op, y);
    }
    default:
      return extremum_text(k, kind == ReduceKind::max, x, y, dtype, false);
  }
}

void accumulate(Kernel& k, const Reduction& r, const std::string& acc, ExprText& point) {
  const DType dtype = r.value.dtype();
  if (real_sum(r) && r.value.op() == ExprOp::mul) {
    const std::string x = point.emit(r.value.args()[0], dtype), y = point.emit(r.value.args()[1], dtype);
    k.line(fmt::format("{} = fma{}({}, {}, {});", acc, dtype == DType::f64 ? "" : "f", x, y, acc));
    return;
  }
  const std::string value = point.emit(r.value, dtype);
  k.line(fmt::format("{} = {};", acc, combine_text(k, r.kind, dtype, acc, value)));
}

}  // namespace opfuse::cuda
