// From a picture to what a model reads: cut, resized, normalised, in the order of its axes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "quantize/picture.hpp"
#include "tensor/tensor.hpp"

namespace opfuse::quantization {

struct PictureOptions {
  enum class Fit { stretch, crop };     ///< crop: the largest middle part of the wanted proportions
  std::vector<double> mean{0}, std{1};  ///< by channel, or one for all: (pixel / 255 - mean) / std
  bool bgr = false;                     ///< the order of channels
  Fit fit = Fit::stretch;
  int64_t height = 0, width = 0;  ///< where the model leaves them open; 0: not given
  bool operator==(const PictureOptions&) const = default;
};

/// "rgb", "bgr"; "stretch", "crop". E::bad_option.
bool parse_bgr(std::string_view channels);
PictureOptions::Fit parse_fit(std::string_view text);

/// Where an input has its axes: [N, C, H, W], [N, H, W, C], or without N.
struct PictureAxes {
  size_t height, width, channel;
};
/// Nothing: not an image of 1 or 3 channels.
std::optional<PictureAxes> picture_axes(const Shape& shape);

/// Bilinear; a picture that shrinks is averaged over the area of each new pixel (Pillow's BILINEAR), rounded to bytes.
std::vector<uint8_t> resized(const Picture& picture, int64_t width, int64_t height, PictureOptions::Fit fit);

/// `sizes`: of the input, all known. f32: normalised; u8: pixels as they are. One channel: ITU-R 601 luma.
Tensor picture_array(const Picture& picture, DType dtype, const std::vector<int64_t>& sizes, const PictureAxes& axes,
                     const PictureOptions& options);

}  // namespace opfuse::quantization
