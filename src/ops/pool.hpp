// Pooling over sliding windows of [N, C, spatial...].
//   max_pool      largest element inside the input; optional second output: flat indices of the maxima
//   average_pool  mean of the elements; with count_include_pad padding counts as zeros of the mean
//   lp_pool       (sum |x|^p)^(1/p)
#pragma once

#include "ops/window.hpp"

namespace opfuse {

struct PoolAttrs : WindowAttrs {
  bool ceil_mode = false;
  static void each(auto& s, auto&& field) {
    WindowAttrs::each(s, field);
    field("ceil_mode", s.ceil_mode);
  }
  /// The resolved spatial axes.
  std::vector<WindowAxis> window(const Shape& x) const {
    return resolve_pads(*this, kernel_shape, x, ceil_mode ? LastWindow::beginning : LastWindow::cut);
  }
};

struct MaxPool {
  struct Attrs : PoolAttrs {
    int64_t storage_order = 0;  ///< 1: indices count the first spatial axis fastest
    static void each(auto& s, auto&& field) {
      PoolAttrs::each(s, field);
      field("storage_order", s.storage_order);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static Cost cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out);
};

struct AveragePool {
  struct Attrs : PoolAttrs {
    bool count_include_pad = false;
    static void each(auto& s, auto&& field) {
      PoolAttrs::each(s, field);
      field("count_include_pad", s.count_include_pad);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static Cost cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out);
};

struct LpPool {
  struct Attrs : PoolAttrs {
    int64_t p = 2;
    static void each(auto& s, auto&& field) {
      PoolAttrs::each(s, field);
      field("p", s.p);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static Cost cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out);
};

}  // namespace opfuse
