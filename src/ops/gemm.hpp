// General matrix product of two matrices.   y = alpha * A' B' + beta * c,   c broadcast to [m, n]
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

struct Gemm {
  struct Attrs {
    double alpha = 1, beta = 1;
    bool transA = false, transB = false;
    static void each(auto& s, auto&& field) {
      field("alpha", s.alpha);
      field("beta", s.beta);
      field("transA", s.transA);
      field("transB", s.transB);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static Cost cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out);
};

/// A product of matrices as models spell it: gemm, or matmul with its leading axes.
bool is_matrix_product(const Node& node);

}  // namespace opfuse
