// Where `run` writes tensors: a folder of .npy files, or one file.
#pragma once

#include <string>
#include <vector>

#include "flag_set.hpp"
#include "onnx/tensor_files.hpp"

namespace opfuse::cli {

struct ArrayFlags {
  std::string folder, output;
  bool save_inputs = false;
};

void add_array_flags(FlagSet& app, ArrayFlags& flags);

/// Before any work: E::bad_option where the flags contradict each other or name a kind of file that is none of arrays,
/// E::file_write_failed where nothing can be written.
void check_array_flags(const FlagSet& app, const ArrayFlags& flags, size_t outputs);

/// Says what was written. Nothing where no flag names a place.
void write_arrays(const ArrayFlags& flags, const std::vector<NamedTensor>& outputs,
                  const std::vector<NamedTensor>& inputs);

}  // namespace opfuse::cli
