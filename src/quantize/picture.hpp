// A decoded image file: JPEG and PNG.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace opfuse::quantization {

struct Picture {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> rgb;  ///< rows from the top, three bytes a pixel
};

/// By the end of its name: .jpg, .jpeg or .png, in any case.
bool is_picture(const std::string& path);

/// Greys become three equal channels, transparency goes onto black, orientation tags are not followed.
/// E::bad_file: damaged, CMYK, more pixels than the limit picture_pixels, or the library that reads it is not
/// installed.
Picture read_picture(const std::string& path);

}  // namespace opfuse::quantization
