// Products of floats, and which kind of products a contraction has.
#include "cpu/emit/contraction/product.hpp"

#include "base/fail.hpp"
#include "cpu/emit/math/half_float.hpp"

namespace opfuse::cpu {

Product float_products(Kernel& k, const ContractionView& view) {
  const auto lanes = static_cast<int>(view.types.lanes(k.target));
  Product p;
  p.word = k.value_type(view.types.sum);  // data of f16 are widened before (widen_data.cpp)
  p.weights = k.lanes(k.memory_type(view.types.weights), lanes);
  p.sums = k.lanes(k.value_type(view.types.sum), lanes);
  p.spread = [&k, lanes](Value* x) { return Factor{k.splat(x, lanes)}; };
  p.unpack = [](Value* w) { return Factor{w}; };
  p.add = [&k](Value* sums, const Factor& x, const Factor& w) { return k.fma(x[0], w[0], sums); };
  return p;
}

/// Weights of 16 bits become f32 in registers.
Product widened_products(Kernel& k, const ContractionView& view) {
  Product p = float_products(k, view);
  p.unpack = [&k, type = view.types.weights](Value* w) { return Factor{widen_half(k, w, type)}; };
  return p;
}

Product product_of(Kernel& k, const ContractionView& view) {
  const ElementTypes& types = view.types;
  for (const ProductKind& kind : kProductKinds)
    if (kind.types.data == types.data && kind.types.weights == types.weights && kind.types.sum == types.sum)
      return kind.make(k, view);
  throw fail(E::codegen_failed, "products of {} and {} in {} have no instructions", name_of(types.data),
             name_of(types.weights), name_of(types.sum));
}

}  // namespace opfuse::cpu
