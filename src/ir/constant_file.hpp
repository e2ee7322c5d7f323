// Large constants of text graphs in one binary file, each at a multiple of 64 bytes, equal ones once.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "tensor/tensor.hpp"

namespace opfuse {

class AtomicFile;

class ConstantFile {
 public:
  /// The file is made when the first constant is added.
  explicit ConstantFile(std::string path);
  ~ConstantFile();
  /// Appends the bytes unless they are there already; returns "file<\"name.bin\", offset>".
  std::string add(const Tensor& tensor);
  /// The file appears under its name; without this it never does. E::file_write_failed.
  void commit();

 private:
  std::string path_;
  std::unique_ptr<AtomicFile> out_;
  std::map<std::string, int64_t> offsets_;
  int64_t end_ = 0;
};

}  // namespace opfuse
