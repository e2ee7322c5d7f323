// Moves blocks of pixels to and from channels of [N, C, H, W].
//   depth_to_space DCR: channel = (block_row, block_column, c)      CRD: channel = (c, block_row, block_column)
#pragma once

#include <array>

#include "ops/declare.hpp"

namespace opfuse {

enum class DepthToSpaceMode { DCR, CRD };
template <>
inline constexpr auto enum_names<DepthToSpaceMode> = std::array{"DCR", "CRD"};

struct DepthToSpace {
  struct Attrs {
    int64_t blocksize = 1;
    DepthToSpaceMode mode = DepthToSpaceMode::DCR;
    static void each(auto& s, auto&& field) {
      field("blocksize", s.blocksize);
      field("mode", s.mode);
    }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

struct SpaceToDepth {
  struct Attrs {
    int64_t blocksize = 1;
    static void each(auto& s, auto&& field) { field("blocksize", s.blocksize); }
  };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
};

}  // namespace opfuse
