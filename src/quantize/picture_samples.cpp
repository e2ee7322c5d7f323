// The input's shape says where height, width and channels are; sizes that it leaves open must be given.
#include "quantize/picture_samples.hpp"

#include <fmt/format.h>

#include <memory>

#include "base/fail.hpp"
#include "base/hash.hpp"
#include "quantize/file_mark.hpp"

namespace opfuse::quantization {
namespace {

struct Pictures {
  std::vector<std::string> paths;
  DType dtype;
  std::vector<int64_t> sizes;
  PictureAxes axes;
  PictureOptions options;
};

void check_normalisation(const PictureOptions& options, const TensorType& type, int64_t channels) {
  const bool changed = options.mean != std::vector<double>{0} || options.std != std::vector<double>{1};
  if (type.dtype == DType::u8 && changed)
    throw fail(E::bad_option, "the input is u8: it reads pixels as they are, without mean and standard deviation");
  for (const auto* list : {&options.mean, &options.std})
    if (list->size() != 1 && static_cast<int64_t>(list->size()) != channels)
      throw fail(E::bad_option, "{} numbers to normalise {} channels by", list->size(), channels);
  for (double s : options.std)
    if (!(s > 0)) throw fail(E::bad_option, "a standard deviation of {:g}", s);
  if (options.bgr && channels != 3) throw fail(E::bad_option, "{} channel has no order", channels);
}

int64_t size_of(const Dim& dim, int64_t given, const SymbolValues& dims, const std::string& input) {
  if (dim.is_constant()) {
    if (given != 0 && given != dim.value())
      throw fail(E::bad_option, "'{}' is {} wide or high, not {}", input, dim.value(), given);
    return dim.value();
  }
  const auto at = dim.op() == DimOp::symbol ? dims.find(dim.symbol_name()) : dims.end();
  if (at != dims.end()) return at->second;
  if (given > 0) return given;
  throw fail(E::bad_binding, "the model leaves the size of '{}' open", input)
      .hint("--image-size HEIGHTxWIDTH says what pictures are resized to");
}

Pictures pictures_for(std::vector<std::string> paths, const Graph& interface, const SampleFileOptions& options) {
  const Value& input = *interface.inputs()[0];
  const auto axes = picture_axes(input.type.shape);
  const bool image =
      interface.inputs().size() == 1 && axes && (input.type.dtype == DType::f32 || input.type.dtype == DType::u8);
  if (!image)
    throw fail(E::bad_binding, "\"{}\" is a picture, and the model reads {}", paths[0],
               interface.inputs().size() == 1 ? input.type.text() : fmt::format("{} inputs", interface.inputs().size()))
        .file(paths[0])
        .hint(
            "pictures go to one input of f32 or u8, [N, C, H, W] or [N, H, W, C] with 1 or 3 channels; save others as "
            ".npy or .npz");
  const Shape& shape = input.type.shape;
  const PictureOptions& p = options.pictures;
  Pictures made{std::move(paths), input.type.dtype, {}, *axes, p};
  for (size_t d = 0; d < shape.rank(); ++d) {
    const bool spatial = d == axes->height || d == axes->width;
    const int64_t given = d == axes->height ? p.height : d == axes->width ? p.width : 1;
    if (spatial)
      made.sizes.push_back(size_of(shape[d], given, options.dims, input.name));
    else
      made.sizes.push_back(shape[d].is_constant() ? shape[d].value() : 1);
  }
  if (shape.rank() == 4 && made.sizes[0] != 1)
    throw fail(E::bad_binding, "the model's batch is {}, and a picture is one sample", made.sizes[0])
        .hint("export it with an open batch or a batch of 1");
  check_normalisation(p, input.type, made.sizes[axes->channel]);
  return made;
}

std::string identity_of(const Pictures& pictures) {
  const PictureOptions& o = pictures.options;
  std::string text = fmt::format("pictures {} {} {} {} {}", fmt::join(o.mean, ","), fmt::join(o.std, ","), o.bgr,
                                 static_cast<int>(o.fit), fmt::join(pictures.sizes, "x"));
  for (const std::string& path : pictures.paths) text += " " + file_mark(path);
  return hash_text(text).hex();
}

}  // namespace

Samples samples_from_pictures(std::vector<std::string> paths, const Graph& interface,
                              const SampleFileOptions& options) {
  if (options.most > 0 && options.most < paths.size()) {
    std::vector<std::string> kept;
    for (size_t i = 0; i < options.most; ++i) kept.push_back(paths[i * paths.size() / options.most]);
    paths = std::move(kept);
  }
  const auto pictures = std::make_shared<const Pictures>(pictures_for(std::move(paths), interface, options));
  return {.read = [pictures](size_t index) -> std::optional<std::vector<Tensor>> {
            if (index >= pictures->paths.size()) return std::nullopt;
            return std::vector<Tensor>{picture_array(read_picture(pictures->paths[index]), pictures->dtype,
                                                     pictures->sizes, pictures->axes, pictures->options)};
          },
          .name =
              [pictures](size_t index) {
                return fmt::format("\"{}\"", pictures->paths[std::min(index, pictures->paths.size() - 1)]);
              },
          .count = pictures->paths.size(),
          .identity = identity_of(*pictures)};
}

}  // namespace opfuse::quantization
