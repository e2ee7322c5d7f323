// Einsum by its definition: one loop nest over the output labels and the summed ones, operands addressed by strides.
// An ellipsis becomes labels of its own (aligned at the end, as broadcasting does).
#include "ops/einsum.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "base/fail.hpp"
#include "ops/broadcast_dim.hpp"
#include "ops/checks.hpp"
#include "ops/strided_copy.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {
namespace {

/// Labels are letters, or 1000 + distance from the end for axes of an ellipsis.
using Labels = std::vector<int>;
constexpr int kEllipsis = 1000;

struct Equation {
  std::vector<Labels> operands;
  Labels result;
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// One term of the equation; `covered` axes stand for its ellipsis.
Labels parse_term(const std::string& term, size_t covered) {
  Labels labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (is_letter(term[i])) {
      labels.push_back(term[i]);
    } else if (term.compare(i, 3, "...") == 0) {
      for (size_t k = covered; k-- > 0;) labels.push_back(kEllipsis + static_cast<int>(k));
      i += 2;
    } else {
      throw fail(E::bad_attribute, "equation term \"{}\" contains '{}'", term, term[i]);
    }
  }
  return labels;
}

size_t letters(const std::string& term) {
  return static_cast<size_t>(std::count_if(term.begin(), term.end(), is_letter));
}

Equation parse(const std::string& equation, const std::vector<size_t>& ranks) {
  std::string text;
  std::copy_if(equation.begin(), equation.end(), std::back_inserter(text), [](char c) { return c != ' '; });
  const size_t arrow = text.find("->");
  std::vector<std::string> terms(1);
  for (char c : text.substr(0, arrow))
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  if (terms.size() != ranks.size())
    throw fail(E::arity_mismatch, "equation \"{}\" has {} terms for {} operands", equation, terms.size(), ranks.size());
  Equation e;
  size_t widest = 0;
  std::map<int, int> uses;
  for (size_t i = 0; i < terms.size(); ++i) {
    const size_t named = letters(terms[i]);
    const bool dots = terms[i].find("...") != std::string::npos;
    if (named > ranks[i] || (!dots && named != ranks[i]))
      throw fail(E::rank_mismatch, "equation term \"{}\" does not fit operand {} of rank {}", terms[i], i, ranks[i]);
    widest = std::max(widest, ranks[i] - named);
    e.operands.push_back(parse_term(terms[i], ranks[i] - named));
    for (char c : terms[i])
      if (is_letter(c)) ++uses[c];
  }
  if (arrow != std::string::npos) {
    e.result = parse_term(text.substr(arrow + 2), widest);
    return e;
  }
  for (size_t k = widest; k-- > 0;) e.result.push_back(kEllipsis + static_cast<int>(k));
  for (const auto& [label, count] : uses)
    if (count == 1) e.result.push_back(label);
  return e;
}

/// Extent of every label; broadcast ones may be 1 in some operands.
std::map<int, Dim> extents(const Equation& e, const std::vector<Shape>& shapes) {
  std::map<int, Dim> size;
  for (size_t i = 0; i < shapes.size(); ++i)
    for (size_t d = 0; d < shapes[i].rank(); ++d) {
      const int label = e.operands[i][d];
      const auto [at, fresh] = size.emplace(label, shapes[i][d]);
      if (fresh) continue;
      const auto common = broadcast_dim(at->second, shapes[i][d]);
      if (!common)
        throw fail(E::shape_mismatch, "an axis of the equation differs between operands: {} and {}", at->second.text(),
                   shapes[i][d].text());
      assume(DimRule::broadcast, at->second, shapes[i][d], "an axis of the equation broadcasts");
      at->second = *common;
    }
  for (int label : e.result) {
    if (!size.contains(label)) throw fail(E::bad_attribute, "the equation's result has a label that no operand has");
    if (std::count(e.result.begin(), e.result.end(), label) > 1)
      throw fail(E::bad_attribute, "the equation's result has a label twice");
  }
  return size;
}

std::vector<size_t> ranks_of(const std::vector<Shape>& shapes) {
  std::vector<size_t> ranks;
  for (const Shape& s : shapes) ranks.push_back(s.rank());
  return ranks;
}

/// Result labels first, then the summed ones.
Labels loop_order(const Equation& e, const std::map<int, Dim>& size) {
  Labels loop = e.result;
  for (const auto& [label, extent] : size)
    if (std::find(loop.begin(), loop.end(), label) == loop.end()) loop.push_back(label);
  return loop;
}

}  // namespace

EinsumAxes einsum_axes(const Einsum::Attrs& attrs, const std::vector<Shape>& operands) {
  const Equation e = parse(attrs.equation, ranks_of(operands));
  EinsumAxes axes{e.operands, e.result, {}, extents(e, operands)};
  const Labels loop = loop_order(e, axes.extents);
  axes.summed.assign(loop.begin() + static_cast<std::ptrdiff_t>(e.result.size()), loop.end());
  return axes;
}

OpSpec Einsum::spec() {
  return {.name = "einsum",
          .inputs = {variadic_port("x")},
          .outputs = {{"y"}},
          .kind = OpKind::contraction,
          .doc = "Einstein summation."};
}

std::vector<TensorType> Einsum::infer(const Attrs& a, const Inference& in) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < in.inputs(); ++i) {
    require_numeric(in, i);
    require_same_dtype(in, 0, i);
    shapes.push_back(in.shape(i));
  }
  if (has_unranked(in)) return unranked(in, in.dtype(0));
  const Equation e = parse(a.equation, ranks_of(shapes));
  const auto size = extents(e, shapes);
  Shape y;
  for (int label : e.result) y.dims.push_back(size.at(label));
  return {{in.dtype(0), y}};
}

std::vector<Tensor> Einsum::reference(const Attrs& a, Tensors in, Precision) {
  std::vector<Shape> shapes;
  std::vector<Reals> values;
  for (const Tensor* t : in) {
    shapes.push_back(Shape::of(t->sizes()));
    values.emplace_back(*t);
  }
  const Equation e = parse(a.equation, ranks_of(shapes));
  const auto size = extents(e, shapes);
  const Labels loop = loop_order(e, size);
  std::vector<int64_t> bounds, result_sizes;
  for (int label : loop) bounds.push_back(size.at(label).value());
  for (int label : e.result) result_sizes.push_back(size.at(label).value());
  // strides[operand][loop axis]; a label that occurs twice in a term adds up to its diagonal.
  std::vector<std::vector<int64_t>> strides(in.size(), std::vector<int64_t>(loop.size(), 0));
  for (size_t i = 0; i < in.size(); ++i) {
    const std::vector<int64_t> pitch = dense_strides(in[i]->sizes());
    for (size_t d = 0; d < pitch.size(); ++d)
      if (in[i]->dim(d) != 1)
        strides[i][static_cast<size_t>(std::find(loop.begin(), loop.end(), e.operands[i][d]) - loop.begin())] +=
            pitch[d];
  }
  Tensor y(DType::f64, result_sizes);
  double* out = reals(y);
  const int64_t summed = product(bounds, result_sizes.size(), bounds.size()), total = y.elements() * summed;
  std::vector<int64_t> at(loop.size(), 0), offset(in.size(), 0);
  for (int64_t step = 0; step < total; ++step) {
    double term = 1;
    for (size_t i = 0; i < in.size(); ++i) term *= values[i][offset[i]];
    out[step / summed] += term;
    for (size_t d = loop.size(); d-- > 0;) {
      for (size_t i = 0; i < in.size(); ++i) offset[i] += strides[i][d];
      if (++at[d] < bounds[d]) break;
      for (size_t i = 0; i < in.size(); ++i) offset[i] -= strides[i][d] * bounds[d];
      at[d] = 0;
    }
  }
  return {rounded(std::move(y), in[0]->dtype())};
}

Cost Einsum::cost(const Attrs& a, std::span<const TensorType> in, std::span<const TensorType>) {
  std::vector<Shape> shapes;
  for (const TensorType& t : in) {
    if (!t.shape.ranked) return {};
    shapes.push_back(t.shape);
  }
  Dim steps = 1;
  for (const auto& [label, extent] : extents(parse(a.equation, ranks_of(shapes)), shapes)) steps = steps * extent;
  return {.flops = steps * Dim(static_cast<int64_t>(std::max<size_t>(in.size(), 2)))};
}

}  // namespace opfuse
