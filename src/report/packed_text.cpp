// Assembly is long and repeats itself: zlib makes a tenth of it.
#include <zlib.h>

#include "base/fail.hpp"
#include "report/document.hpp"

namespace opfuse::report {

std::string packed_text(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string packed(size, '\0');
  const int state = compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                              reinterpret_cast<const Bytef*>(text.data()), text.size(), Z_BEST_COMPRESSION);
  OPFUSE_CHECK(state == Z_OK, "zlib: {}", state);
  packed.resize(size);
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < packed.size(); i += 3) {
    uint32_t bits = 0;
    const size_t count = std::min<size_t>(3, packed.size() - i);
    for (size_t k = 0; k < 3; ++k) bits = bits << 8 | (k < count ? static_cast<uint8_t>(packed[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) out += k <= count ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

}  // namespace opfuse::report
