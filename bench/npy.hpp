// Arrays in numpy's .npy format (version 1, little-endian, C order): what the peers' runner and opfuse_turns exchange.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "opfuse/runtime.hpp"

namespace bench {

struct Array {
  opfuse::DType dtype = opfuse::DType::unknown;
  std::vector<int64_t> shape;
  std::vector<char> bytes;

  opfuse::ArrayView view() { return {dtype, bytes.data(), shape}; }
};

/// Bytes of one element; 0 for a type that .npy files of this runner do not have.
size_t element_size(opfuse::DType dtype);

/// Both throw std::runtime_error with the path in the text.
Array read_npy(const std::string& path);
void write_npy(const std::string& path, const opfuse::ArrayView& array);

}  // namespace bench
