// The kinds of products, the first that takes the elements' types: bytes, and floats.
#include "cpu/emit/contraction/product.hpp"

#include "base/fail.hpp"

namespace opfuse::cpu {
namespace {

bool multiplies_floats(const ElementTypes& types) {
  return types.data == DType::f32 && types.weights == DType::f32 && types.sum == DType::f32;
}

Product float_products(Kernel& k, const ContractionView& view) {
  const auto lanes = static_cast<int>(view.types.lanes(k.target));
  Product p;
  p.word = k.memory_type(view.types.data);
  p.weights = k.lanes(k.memory_type(view.types.weights), lanes);
  p.sums = k.lanes(k.value_type(view.types.sum), lanes);
  p.spread = [&k, lanes](Value* x) { return Factor{k.splat(x, lanes)}; };
  p.unpack = [](Value* w) { return Factor{w}; };
  p.add = [&k](Value* sums, const Factor& x, const Factor& w) { return k.fma(x[0], w[0], sums); };
  return p;
}

struct Kind {
  bool (*takes)(const ElementTypes&);
  Product (*make)(Kernel&, const ContractionView&);
};
constexpr Kind kKinds[] = {{multiplies_bytes, byte_products}, {multiplies_floats, float_products}};

}  // namespace

Product product_of(Kernel& k, const ContractionView& view) {
  for (const Kind& kind : kKinds)
    if (kind.takes(view.types)) return kind.make(k, view);
  throw fail(E::codegen_failed, "products of {} and {} in {} have no instructions", name_of(view.types.data),
             name_of(view.types.weights), name_of(view.types.sum));
}

}  // namespace opfuse::cpu
