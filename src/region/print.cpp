// Regions as text, one fact per line, so that parse_region(print(r)) == r:
//
//   region
//   param input f32[1,64,56,56]
//   param output f32[1,64,28,28]
//   stage window
//     domain [1,64,28,28]
//     reduce [3,3]
//     read param 0 at [a0, a1, 2*a2 + a4 + -1, 2*a3 + a5 + -1]
//     reduction max select(in0, r0, -inf)
//     output param 1 f32[1,64,28,28] at [a0, a1, a2, a3] = s0
//
// An index is a sum of coef*aK/div%mod and an offset; symbolic numbers stand in braces, an integer
// expression (dynamic index) in backquotes. An output of a scatter that combines says how: "at [`r0`] sum = r1", one
// that some points miss that they do: "at [a0 + -1] clipped = s0".
#include <fmt/format.h>

#include "region/names.hpp"

namespace opfuse {
namespace {

std::string text_of_dim(const Dim& dim) {
  return dim.is_constant() ? fmt::format("{}", dim.value()) : fmt::format("{{{}}}", dim.text());
}

std::string text_of_term(const IndexTerm& term) {
  std::string text;
  if (!(term.coef == Dim(1))) text += text_of_dim(term.coef) + "*";
  text += fmt::format("a{}", term.axis);
  if (!(term.div == Dim(1))) text += "/" + text_of_dim(term.div);
  if (!(term.mod == Dim(0))) text += "%" + text_of_dim(term.mod);
  return text;
}

void print_stage(const Stage& stage, std::string& out) {
  out += fmt::format("stage {}\n  domain {}\n", name_of(stage.anchor), Shape(stage.domain).text());
  if (!stage.reduce.empty()) out += fmt::format("  reduce {}\n", Shape(stage.reduce).text());
  for (const Read& read : stage.reads) {
    const std::string what =
        read.stage < 0 ? fmt::format("param {}", read.index) : fmt::format("stage {}.{}", read.stage, read.index);
    out += fmt::format("  read {} at {}\n", what, text_of(read.map));
  }
  for (const Reduction& reduction : stage.reductions)
    out += fmt::format("  reduction {} {}\n", name_of(reduction.kind), reduction.value.text());
  for (const StageOutput& output : stage.outputs) {
    const std::string where = output.param < 0 ? "local" : fmt::format("param {}", output.param);
    std::string law = output.clipped ? "clipped " : "";
    if (output.combine) law += fmt::format("{} ", name_of(*output.combine));
    out += fmt::format("  output {} {}{} at {} {}= {}\n", where, name_of(output.dtype), output.shape.text(),
                       text_of(output.map), law, output.value.text());
  }
}

}  // namespace

std::string text_of(const IndexExpr& index) {
  if (index.dynamic) return "`" + index.dynamic.text() + "`";
  std::string text;
  for (const IndexTerm& term : index.terms) text += (text.empty() ? "" : " + ") + text_of_term(term);
  if (text.empty() || !(index.offset == Dim(0))) text += (text.empty() ? "" : " + ") + text_of_dim(index.offset);
  return text;
}

std::string text_of(const IndexMap& map) {
  std::string text;
  for (const IndexExpr& dim : map.dims) text += (text.empty() ? "" : ", ") + text_of(dim);
  return "[" + text + "]";
}

std::string print(const Region& region) {
  std::string out = "region\n";
  for (const Param& param : region.params) out += fmt::format("param {} {}\n", name_of(param.role), param.type.text());
  for (const Stage& stage : region.stages) print_stage(stage, out);
  return out;
}

}  // namespace opfuse
