// Normalisations: batch, instance, layer, group, local response.
//   batch_norm     y = (x - mean[c]) / sqrt(var[c] + epsilon) * scale[c] + b[c]            statistics are operands
//   instance_norm  the same with mean and variance of each (n, c) plane
//   layer_norm     over all axes from `axis` on; scale and bias have the normalised shape
//   group_norm     channels in `num_groups` groups, statistics of each (n, group)
//   lrn            y = x / (bias + alpha / size * sum over `size` neighbouring channels of x^2) ^ beta
#pragma once

#include "ops/declare.hpp"

namespace opfuse {

/// Inputs x, scale, b, mean, var.
struct BatchNorm {
  struct Attrs {
    double epsilon = 1e-5;
    bool training_mode = false;  ///< refused: opfuse runs inference
    static void each(auto& s, auto&& field) {
      field("epsilon", s.epsilon);
      field("training_mode", s.training_mode);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static Cost cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out);
};

/// Inputs x, scale, b.
struct InstanceNorm {
  struct Attrs {
    double epsilon = 1e-5;
    static void each(auto& s, auto&& field) { field("epsilon", s.epsilon); }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

/// Inputs x, scale, b (optional). Outputs y and, when asked for, mean and inverse standard deviation.
struct LayerNorm {
  struct Attrs {
    int64_t axis = -1;
    double epsilon = 1e-5;
    static void each(auto& s, auto&& field) {
      field("axis", s.axis);
      field("epsilon", s.epsilon);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

/// Inputs x, scale[C], b[C]  (opset 18 gave them per group: the importer repeats them).
struct GroupNorm {
  struct Attrs {
    double epsilon = 1e-5;
    int64_t num_groups = 1;
    static void each(auto& s, auto&& field) {
      field("epsilon", s.epsilon);
      field("num_groups", s.num_groups);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

struct Lrn {
  struct Attrs {
    double alpha = 1e-4, beta = 0.75, bias = 1;
    int64_t size = 1;
    static void each(auto& s, auto&& field) {
      field("alpha", s.alpha);
      field("beta", s.beta);
      field("bias", s.bias);
      field("size", s.size);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

}  // namespace opfuse
