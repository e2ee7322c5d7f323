// Small parts of the region form: index maps made from shapes, the symbols a region mentions, its hash.
#include "region/region.hpp"

#include "base/fail.hpp"
#include "expr/held_ops.hpp"

namespace opfuse {

IndexMap IndexMap::identity(size_t rank) {
  IndexMap map;
  for (size_t i = 0; i < rank; ++i) map.dims.push_back({{IndexTerm{1, static_cast<int>(i)}}, 0, {}});
  return map;
}

IndexMap IndexMap::broadcast(const Shape& shape, const Shape& domain) {
  OPFUSE_CHECK(shape.rank() <= domain.rank(), "operand {} does not broadcast to {}", shape.text(), domain.text());
  IndexMap map;
  const size_t lead = domain.rank() - shape.rank();
  for (size_t i = 0; i < shape.rank(); ++i) {
    const bool repeated = shape[i] == Dim(1) && !(domain[lead + i] == Dim(1));
    IndexExpr dim;
    if (!repeated) dim.terms.push_back(IndexTerm{1, static_cast<int>(lead + i)});
    map.dims.push_back(std::move(dim));
  }
  return map;
}

namespace {

void collect(const Expr& expr, std::set<std::string>& into) {
  if (!holds(expr, ExprOp::extent)) return;
  expr.visit([&](const Expr& e) {
    if (e.op() == ExprOp::extent) e.dim().collect_symbols(into);
  });
}

void collect(const IndexMap& map, std::set<std::string>& into) {
  for (const IndexExpr& dim : map.dims) {
    for (const IndexTerm& term : dim.terms) {
      term.coef.collect_symbols(into);
      term.div.collect_symbols(into);
      term.mod.collect_symbols(into);
    }
    dim.offset.collect_symbols(into);
    collect(dim.dynamic, into);
  }
}

}  // namespace

std::set<std::string> Region::symbols() const {
  std::set<std::string> names;
  for (const Param& param : params)
    for (const Dim& dim : param.type.shape.dims) dim.collect_symbols(names);
  for (const Stage& stage : stages) {
    for (const Dim& dim : stage.domain) dim.collect_symbols(names);
    for (const Dim& dim : stage.reduce) dim.collect_symbols(names);
    for (const Read& read : stage.reads) collect(read.map, names);
    for (const Reduction& reduction : stage.reductions) collect(reduction.value, names);
    for (const StageOutput& output : stage.outputs) {
      collect(output.value, names);
      collect(output.map, names);
    }
  }
  return names;
}

Hash128 Region::hash() const { return hash_text(print(*this)); }

}  // namespace opfuse
