// One multiply-accumulate of a register tile: how data and weights become its factors, and what adds their product to a
// vector of sums. Loops, prefetching, passes and epilogues know nothing else of the elements' types.
//
//   word of data [unit channels]  -- spread -->  factor of all lanes
//   vector of weights [lanes][unit]  -- unpack -->  factor                sums += factor * factor     `unit` products
//   each
//
// A kind of product is a row of kProductKinds and a file of its own (byte_products.cpp).
#pragma once

#include "cpu/emit/kernel.hpp"
#include "kernel/views.hpp"

namespace opfuse::cpu {

/// In one register, or in several where a product takes several instructions.
using Factor = std::vector<Value*>;

struct Product {
  int64_t unit = 1;               ///< channels that one lane adds up at once, neighbours in data and in weights
  llvm::Type* word = nullptr;     ///< of data: scalar
  llvm::Type* weights = nullptr;  ///< vector, as it lies
  llvm::Type* sums = nullptr;     ///< vector
  std::function<Factor(Value* word)> spread;  ///< of bytes also a vector of words, one for each lane
  std::function<Factor(Value* weights)> unpack;
  std::function<Value*(Value* sums, const Factor& x, const Factor& w)> add;
  Value* outside = nullptr;  ///< word of taps outside the data; null: they add nothing and are left out
};

/// Of the first kind that takes the view's types.
Product product_of(Kernel& k, const ContractionView& view);

Product byte_products(Kernel& k, const ContractionView& view);   // byte_products.cpp
Product byte_products(Kernel& k, const ElementTypes& types);     // the same, nothing said of taps outside
Product half_products(Kernel& k, const ContractionView& view);   // half_products.cpp
Product float_products(Kernel& k, const ContractionView& view);  // product.cpp
Product widened_products(Kernel& k, const ContractionView& view);

struct ProductKind {
  ElementTypes types;  ///< data, weights and sums; results are the epilogue's
  Product (*make)(Kernel&, const ContractionView&);
};
inline constexpr ProductKind kProductKinds[] = {
    {{DType::u8, DType::i8, DType::i32}, byte_products},
    {{DType::i8, DType::i8, DType::i32}, byte_products},
    {{DType::bf16, DType::bf16, DType::f32}, half_products},
    {{DType::f32, DType::f32, DType::f32}, float_products},
    {{DType::f32, DType::f16, DType::f32}, widened_products},
    {{DType::f32, DType::bf16, DType::f32}, widened_products},
    {{DType::f16, DType::f32, DType::f32}, float_products},
    {{DType::f16, DType::f16, DType::f32}, widened_products},
    {{DType::f16, DType::bf16, DType::f32}, widened_products},
};

}  // namespace opfuse::cpu
