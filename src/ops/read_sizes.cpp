#include "ops/read_sizes.hpp"

#include "base/fail.hpp"
#include "ops/checks.hpp"

namespace opfuse {

OpSpec ReadSizes::spec() {
  return {.name = "read_sizes",
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .kind = OpKind::shape,
          .flops_per_element = 0,
          .doc = "Integers that a run reads as sizes."};
}

std::vector<TensorType> ReadSizes::infer(const Attrs& a, const Inference& in) {
  require_integer(in, 0);
  if (in.shape(0).ranked && !(in.shape(0).elements() == Dim(static_cast<int64_t>(a.defines.size()))))
    throw fail(E::shape_mismatch, "{} sizes for {}", a.defines.size(), in.type(0).text());
  return {in.type(0)};
}

std::vector<Tensor> ReadSizes::reference(const Attrs&, Tensors in, Precision) { return {*in[0]}; }

std::optional<std::vector<Dim>> ReadSizes::dims(const Attrs& a, const Inference& in) {
  if (auto known = in.dims(0)) return known;
  return std::vector<Dim>([&] {
    std::vector<Dim> dims;
    for (const std::string& symbol : a.defines) dims.push_back(Dim::symbol(symbol));
    return dims;
  }());
}

}  // namespace opfuse
