// Pooling over sliding windows of [N, C, spatial...].
//   max_pool      largest element inside the input; optional second output: flat indices of the maxima
//   average_pool  mean of the elements; with count_include_pad padding counts as zeros of the mean
//   lp_pool       (sum |x|^p)^(1/p)
#pragma once

#include "ops/window.hpp"

namespace opfuse {

struct MaxPool {
  struct Attrs {
    AutoPad auto_pad = AutoPad::notset;
    bool ceil_mode = false;
    std::vector<int64_t> dilations;
    std::vector<int64_t> kernel_shape;
    std::vector<int64_t> pads;
    int64_t storage_order = 0;  ///< 1: indices count the first spatial axis fastest
    std::vector<int64_t> strides;
    static void each(auto& s, auto&& field) {
      field("auto_pad", s.auto_pad);
      field("ceil_mode", s.ceil_mode);
      field("dilations", s.dilations);
      field("kernel_shape", s.kernel_shape);
      field("pads", s.pads);
      field("storage_order", s.storage_order);
      field("strides", s.strides);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static Cost cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out);
  static std::vector<WindowAxis> window(const Attrs& attrs, const Shape& x);
};

struct AveragePool {
  struct Attrs {
    AutoPad auto_pad = AutoPad::notset;
    bool ceil_mode = false;
    bool count_include_pad = false;
    std::vector<int64_t> dilations;
    std::vector<int64_t> kernel_shape;
    std::vector<int64_t> pads;
    std::vector<int64_t> strides;
    static void each(auto& s, auto&& field) {
      field("auto_pad", s.auto_pad);
      field("ceil_mode", s.ceil_mode);
      field("count_include_pad", s.count_include_pad);
      field("dilations", s.dilations);
      field("kernel_shape", s.kernel_shape);
      field("pads", s.pads);
      field("strides", s.strides);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static Cost cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out);
  static std::vector<WindowAxis> window(const Attrs& attrs, const Shape& x);
};

struct LpPool {
  struct Attrs {
    AutoPad auto_pad = AutoPad::notset;
    bool ceil_mode = false;
    std::vector<int64_t> dilations;
    std::vector<int64_t> kernel_shape;
    int64_t p = 2;
    std::vector<int64_t> pads;
    std::vector<int64_t> strides;
    static void each(auto& s, auto&& field) {
      field("auto_pad", s.auto_pad);
      field("ceil_mode", s.ceil_mode);
      field("dilations", s.dilations);
      field("kernel_shape", s.kernel_shape);
      field("p", s.p);
      field("pads", s.pads);
      field("strides", s.strides);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static Cost cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out);
  static std::vector<WindowAxis> window(const Attrs& attrs, const Shape& x);
};

}  // namespace opfuse
