// Everything that reads bytes from outside, as functions of the bytes: what mutation fuzzing drives.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace opfuse::readers {

struct Reader {
  const char* name;
  void (*read)(std::string_view bytes);  ///< returns, or throws opfuse::Error: the bytes are refused
  std::vector<std::string> (*seeds)();   ///< small valid files
};

/// onnx, opf, plan, toml, fir, npy, npz, pb, cache.
const std::vector<Reader>& readers();
const Reader& reader_named(std::string_view name);

}  // namespace opfuse::readers
