// libturbojpeg and libpng's simplified interface by dlopen, with prototypes of our own: neither is needed to build or
// to start. A warning of either about pixels (data that end early, a checksum) is an error here: half a picture has
// other ranges. What stands in front of the pixels may be odd: colour profiles of many files are.
#include "quantize/picture.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <memory>
#include <string_view>

#include "base/fail.hpp"
#include "base/limits.hpp"
#include "base/mapped_file.hpp"

namespace opfuse::quantization {
namespace {

std::string extension_of(const std::string& path) {
  const size_t dot = path.rfind('.');
  std::string text = dot == std::string::npos ? "" : path.substr(dot);
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

Error damaged(const std::string& path, const std::string& why) {
  return fail(E::bad_file, "\"{}\" cannot be decoded: {}", path, why).file(path);
}

Picture sized(const std::string& path, int64_t width, int64_t height) {
  if (width <= 0 || height <= 0) throw damaged(path, fmt::format("it has {} x {} pixels", width, height));
  if (const int64_t most = limits_in_force().picture_pixels; width > most / height)
    throw fail(E::bad_file, "\"{}\" has {} x {} pixels, more than {}", path, width, height, most)
        .file(path)
        .hint("make it smaller, or " + how_to_raise("picture_pixels"));
  return {width, height, std::vector<uint8_t>(static_cast<size_t>(3 * width * height))};
}

/// Functions of a library, looked up once; null where it is not installed.
class Library {
 public:
  explicit Library(const char* name) : handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}
  template <class F>
  void find(F*& function, const char* name) {
    function = handle_ ? reinterpret_cast<F*>(dlsym(handle_, name)) : nullptr;
    complete_ = complete_ && function != nullptr;
  }
  bool complete() const { return complete_; }

 private:
  void* handle_;
  bool complete_ = true;
};

[[noreturn]] void missing(const std::string& path, const char* library, const char* package) {
  throw fail(E::bad_file, "\"{}\" cannot be decoded: {} is not installed", path, library)
      .file(path)
      .hint(fmt::format("apt-get install {}, or save what the model reads as .npy", package));
}

struct TurboJpeg {
  static constexpr int kRgb = 0, kCmyk = 3, kStopOnWarning = 8192, kLimitScans = 32768;  // TJPF, TJCS, TJFLAG
  void* (*start)() = nullptr;
  int (*header)(void*, const unsigned char*, unsigned long, int* width, int* height, int* subsampling,
                int* colours) = nullptr;
  int (*decode)(void*, const unsigned char*, unsigned long, unsigned char*, int width, int pitch, int height,
                int format, int flags) = nullptr;
  char* (*problem)(void*) = nullptr;
  int (*end)(void*) = nullptr;
  bool there = false;

  TurboJpeg() {
    Library library("libturbojpeg.so.0");
    library.find(start, "tjInitDecompress");
    library.find(header, "tjDecompressHeader3");
    library.find(decode, "tjDecompress2");
    library.find(problem, "tjGetErrorStr2");
    library.find(end, "tjDestroy");
    there = library.complete();
  }
};

Picture read_jpeg(const std::string& path, std::string_view bytes) {
  static const TurboJpeg api;
  if (!api.there) missing(path, "libturbojpeg", "libturbojpeg0");
  const std::unique_ptr<void, int (*)(void*)> decoder(api.start(), api.end);
  if (!decoder) throw damaged(path, "libturbojpeg does not start");
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0, height = 0, subsampling = 0, colours = 0;
  if (api.header(decoder.get(), data, bytes.size(), &width, &height, &subsampling, &colours) != 0)
    throw damaged(path, api.problem(decoder.get()));
  if (colours >= TurboJpeg::kCmyk) throw damaged(path, "its colours are CMYK").hint("convert it to RGB");
  Picture picture = sized(path, width, height);
  if (api.decode(decoder.get(), data, bytes.size(), picture.rgb.data(), width, 3 * width, height, TurboJpeg::kRgb,
                 TurboJpeg::kStopOnWarning | TurboJpeg::kLimitScans) != 0)
    throw damaged(path, api.problem(decoder.get()));
  return picture;
}

/// png_image of libpng 1.6.
struct PngImage {
  void* opaque = nullptr;
  uint32_t version = 1, width = 0, height = 0, format = 0, flags = 0, colormap_entries = 0, warning_or_error = 0;
  char message[64] = {};
};
static_assert(offsetof(PngImage, warning_or_error) == sizeof(void*) + 24 && sizeof(PngImage) == sizeof(void*) + 96);

struct PngColour {
  uint8_t red, green, blue;
};

struct Png {
  static constexpr uint32_t kRgb = 2;
  int (*begin)(PngImage*, const void*, size_t) = nullptr;
  int (*finish)(PngImage*, const PngColour* background, void*, int32_t pitch, void* colormap) = nullptr;
  void (*free)(PngImage*) = nullptr;
  bool there = false;

  Png() {
    Library library("libpng16.so.16");
    library.find(begin, "png_image_begin_read_from_memory");
    library.find(finish, "png_image_finish_read");
    library.find(free, "png_image_free");
    there = library.complete();
  }
};

Picture read_png(const std::string& path, std::string_view bytes) {
  static const Png api;
  if (!api.there) missing(path, "libpng", "libpng16-16");
  PngImage image;
  const std::unique_ptr<PngImage, void (*)(PngImage*)> guard(&image, api.free);
  constexpr uint32_t kWarning = 1;
  const auto check = [&](int done) {
    if (!done || image.warning_or_error != 0) throw damaged(path, image.message);
  };
  const int begun = api.begin(&image, bytes.data(), bytes.size());
  if (image.warning_or_error == kWarning) image.warning_or_error = 0;
  check(begun);
  Picture picture = sized(path, image.width, image.height);
  image.format = Png::kRgb;
  const PngColour black{};
  check(api.finish(&image, &black, picture.rgb.data(), 0, nullptr));
  return picture;
}

}  // namespace

bool is_picture(const std::string& path) {
  const std::string extension = extension_of(path);
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

Picture read_picture(const std::string& path) {
  const auto file = MappedFile::open(path, true);
  const std::string_view bytes = file->bytes();
  if (bytes.starts_with("\xff\xd8")) return read_jpeg(path, bytes);
  if (bytes.starts_with("\x89PNG")) return read_png(path, bytes);
  throw damaged(path, bytes.empty() ? "it is empty" : "it is neither JPEG nor PNG");
}

}  // namespace opfuse::quantization
