// Functions are inlined by the reader, so both sides are compared without groups.
#include "written_model.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "ir/outline.hpp"
#include "onnx/read.hpp"
#include "opfuse/error.hpp"

namespace opfuse::cli {
namespace {

constexpr double kSameNumbers = 1e-6;  // doubles, rounded to f32 at the end

WrittenCheck same_outputs(const Graph& wrote, const Graph& read) {
  SymbolValues sizes;
  for (const std::string& symbol : wrote.symbols()) sizes[symbol] = 2;
  const std::vector<Tensor> inputs = random_inputs(wrote, {.symbols = sizes});
  const std::vector<Tensor> want = interpret(wrote, inputs), got = interpret(read, inputs);
  double worst = 0;
  for (size_t i = 0; i < want.size(); ++i) worst = std::max(worst, difference(got[i], want[i]).relative());
  return {worst <= kSameNumbers,
          fmt::format("outputs on random inputs differ by {:.1e} of their largest value", worst)};
}

bool same_interface(const Graph& a, const Graph& b) {
  const auto same = [](const Value* x, const Value* y) { return x->name == y->name && x->type.dtype == y->type.dtype; };
  return a.inputs().size() == b.inputs().size() && a.outputs().size() == b.outputs().size() &&
         std::equal(a.inputs().begin(), a.inputs().end(), b.inputs().begin(), same) &&
         std::equal(a.outputs().begin(), a.outputs().end(), b.outputs().begin(), same);
}

}  // namespace

WrittenCheck check_written(const Graph& graph, const std::string& path) {
  try {
    Graph wrote = graph.clone();
    expand_bodies(wrote);
    Graph read = read_onnx(path, {.fold_shapes = false});
    expand_bodies(read);
    if (!same_interface(wrote, read)) return {false, "inputs or outputs have other names or types"};
    std::string why;
    if (equal(wrote, read, &why)) return {true, fmt::format("the same {} nodes and wiring", read.nodes().size())};
    return same_outputs(wrote, read);
  } catch (const Error& error) {
    return {false, error.diagnostic().message};
  }
}

}  // namespace opfuse::cli
