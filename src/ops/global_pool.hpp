// Global pooling: all spatial axes of [N, C, spatial...] become 1.
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct GlobalAveragePool {
  struct Attrs {
    static void each(auto&, auto&&) {}
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static Cost cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out);
};

struct GlobalMaxPool {
  struct Attrs {
    static void each(auto&, auto&&) {}
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static Cost cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out);
};

struct GlobalLpPool {
  struct Attrs {
    int64_t p = 2;
    static void each(auto& s, auto&& field) { field("p", s.p); }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static Cost cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out);
};

}  // namespace opfuse
