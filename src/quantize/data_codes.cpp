#include "quantize/data_codes.hpp"

#include <algorithm>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"

namespace opfuse::quantization {

const std::vector<std::string>& data_codes_names() {
  static const std::vector<std::string> kNames{"u8", "s8", "by-sign"};
  return kNames;
}

DataCodes parse_data_codes(std::string_view text) {
  const std::vector<std::string>& names = data_codes_names();
  const auto at = std::find(names.begin(), names.end(), text);
  if (at == names.end())
    throw fail(E::bad_option, "activations are u8, s8 or by-sign, not '{}'", text).hint(did_you_mean(text, names));
  return static_cast<DataCodes>(at - names.begin());
}

std::string_view name_of(DataCodes codes) {
  return codes == DataCodes::u8 ? "u8" : codes == DataCodes::s8 ? "i8" : "by_sign";
}

DType dtype_of(DataCodes codes, bool negative) {
  return codes == DataCodes::s8 || (codes == DataCodes::by_sign && negative) ? DType::i8 : DType::u8;
}

}  // namespace opfuse::quantization
