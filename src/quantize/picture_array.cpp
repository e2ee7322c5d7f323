// Each new pixel is a weighted mean of old ones, along x, then along y: weights fall linearly from the new pixel's
// middle to one new pixel's distance (one old pixel's where the picture grows).
#include "quantize/picture_array.hpp"

#include <algorithm>
#include <cmath>

#include "base/fail.hpp"

namespace opfuse::quantization {
namespace {

struct Taps {
  int64_t first = 0;
  std::vector<float> weights;
};

/// For `to` new pixels over [begin, begin + length) of `from` old ones.
std::vector<Taps> taps_of(int64_t from, double begin, double length, int64_t to) {
  const double scale = length / static_cast<double>(to), support = std::max(scale, 1.0);
  std::vector<Taps> all(static_cast<size_t>(to));
  for (int64_t i = 0; i < to; ++i) {
    const double middle = begin + (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::clamp<int64_t>(static_cast<int64_t>(middle - support + 0.5), 0, from - 1);
    const auto end = std::clamp<int64_t>(static_cast<int64_t>(middle + support + 0.5), first + 1, from);
    Taps& taps = all[static_cast<size_t>(i)];
    taps.first = first;
    double sum = 0;
    std::vector<double> weights;
    for (int64_t j = first; j < end; ++j) {
      weights.push_back(std::max(0.0, 1 - std::fabs(static_cast<double>(j) + 0.5 - middle) / support));
      sum += weights.back();
    }
    for (double w : weights) taps.weights.push_back(static_cast<float>(sum > 0 ? w / sum : 1 / double(weights.size())));
  }
  return all;
}

struct Part {
  double x = 0, y = 0, width = 0, height = 0;
};

Part part_of(const Picture& picture, int64_t width, int64_t height, PictureOptions::Fit fit) {
  Part part{0, 0, static_cast<double>(picture.width), static_cast<double>(picture.height)};
  if (fit == PictureOptions::Fit::stretch) return part;
  const double proportion = static_cast<double>(width) / static_cast<double>(height);
  if (part.width > part.height * proportion) {
    part.x = (part.width - part.height * proportion) / 2;
    part.width = part.height * proportion;
  } else {
    part.y = (part.height - part.width / proportion) / 2;
    part.height = part.width / proportion;
  }
  return part;
}

}  // namespace

bool parse_bgr(std::string_view channels) {
  if (channels != "rgb" && channels != "bgr")
    throw fail(E::bad_option, "channels of pictures are rgb or bgr, not '{}'", channels);
  return channels == "bgr";
}

PictureOptions::Fit parse_fit(std::string_view text) {
  if (text != "stretch" && text != "crop")
    throw fail(E::bad_option, "pictures are fitted by stretch or crop, not '{}'", text);
  return text == "crop" ? PictureOptions::Fit::crop : PictureOptions::Fit::stretch;
}

std::optional<PictureAxes> picture_axes(const Shape& shape) {
  const size_t rank = shape.rank();
  if (rank != 3 && rank != 4) return std::nullopt;
  for (const int64_t channels : {3, 1}) {
    if (shape[rank - 3] == Dim(channels)) return PictureAxes{rank - 2, rank - 1, rank - 3};
    if (shape[rank - 1] == Dim(channels)) return PictureAxes{rank - 3, rank - 2, rank - 1};
  }
  return std::nullopt;
}

std::vector<uint8_t> resized(const Picture& picture, int64_t width, int64_t height, PictureOptions::Fit fit) {
  const Part part = part_of(picture, width, height, fit);
  const std::vector<Taps> along_x = taps_of(picture.width, part.x, part.width, width);
  const std::vector<Taps> along_y = taps_of(picture.height, part.y, part.height, height);
  std::vector<float> rows(static_cast<size_t>(picture.height * width * 3));
  for (int64_t y = 0; y < picture.height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      const Taps& taps = along_x[static_cast<size_t>(x)];
      float* to = rows.data() + (y * width + x) * 3;
      const uint8_t* from = picture.rgb.data() + (y * picture.width + taps.first) * 3;
      for (size_t t = 0; t < taps.weights.size(); ++t)
        for (size_t c = 0; c < 3; ++c) to[c] += taps.weights[t] * static_cast<float>(from[3 * t + c]);
    }
  std::vector<uint8_t> out(static_cast<size_t>(height * width * 3));
  std::vector<float> sums(static_cast<size_t>(width * 3));
  for (int64_t y = 0; y < height; ++y) {
    const Taps& taps = along_y[static_cast<size_t>(y)];
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (size_t t = 0; t < taps.weights.size(); ++t) {
      const float* row = rows.data() + (taps.first + static_cast<int64_t>(t)) * width * 3;
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += taps.weights[t] * row[i];
    }
    uint8_t* to = out.data() + y * width * 3;
    for (size_t i = 0; i < sums.size(); ++i)
      to[i] = static_cast<uint8_t>(std::clamp(std::nearbyint(sums[i]), 0.0f, 255.0f));
  }
  return out;
}

Tensor picture_array(const Picture& picture, DType dtype, const std::vector<int64_t>& sizes, const PictureAxes& axes,
                     const PictureOptions& options) {
  const int64_t height = sizes[axes.height], width = sizes[axes.width], channels = sizes[axes.channel];
  const std::vector<uint8_t> rgb = resized(picture, width, height, options.fit);
  const bool first = axes.channel < axes.height;
  const int64_t of_pixel = first ? 1 : channels, of_channel = first ? height * width : 1;
  Tensor made(dtype, sizes);
  const auto number = [](const std::vector<double>& list, int64_t c) {
    return list[list.size() == 1 ? 0 : static_cast<size_t>(c)];
  };
  for (int64_t c = 0; c < channels; ++c) {
    const double scale = 1 / (255 * number(options.std, c)), shift = number(options.mean, c) / number(options.std, c);
    const size_t from = static_cast<size_t>(options.bgr ? 2 - c : c);
    for (int64_t i = 0; i < height * width; ++i) {
      const uint8_t* p = rgb.data() + 3 * i;
      const double byte = channels == 3 ? p[from] : std::nearbyint(0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2]);
      const int64_t at = c * of_channel + i * of_pixel;
      if (dtype == DType::u8)
        made.mutable_view<uint8_t>()[static_cast<size_t>(at)] = static_cast<uint8_t>(byte);
      else
        made.mutable_view<float>()[static_cast<size_t>(at)] = static_cast<float>(byte * scale - shift);
    }
  }
  return made;
}

}  // namespace opfuse::quantization
