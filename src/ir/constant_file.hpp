// Large constants of text graphs in one binary file, each at a multiple of 64 bytes, equal ones once.
#pragma once

#include <fstream>
#include <map>
#include <string>

#include "tensor/tensor.hpp"

namespace opfuse {

class ConstantFile {
 public:
  /// The file is made when the first constant is added.
  explicit ConstantFile(std::string path) : path_(std::move(path)) {}
  /// Appends the bytes unless they are there already; returns "file<\"name.bin\", offset>".
  std::string add(const Tensor& tensor);
  /// Flushes; E::file_write_failed.
  void close();

 private:
  std::string path_;
  std::ofstream out_;
  std::map<std::string, int64_t> offsets_;
  int64_t end_ = 0;
};

}  // namespace opfuse
