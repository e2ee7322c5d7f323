// Tensors in files: NumPy's .npy and .npz, ONNX's TensorProto .pb.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/tensor.hpp"

namespace opfuse {

using NamedTensor = std::pair<std::string, Tensor>;

// Reading throws E::bad_file for damaged files and element types opfuse does not have, E::file_not_found when there is
// no file. Writing throws E::file_write_failed; a file appears complete or not at all. NumPy has no bfloat16: such
// tensors are written as f32, which is exact.
Tensor read_npy(const std::string& path);
void write_npy(const std::string& path, const Tensor& tensor);
std::vector<NamedTensor> read_npz(const std::string& path);
void write_npz(const std::string& path, const std::vector<NamedTensor>& tensors);
NamedTensor read_tensor_pb(const std::string& path);
void write_tensor_pb(const std::string& path, const Tensor& tensor, std::string_view name);

/// By the file's extension (.npy, .npz, .pb); the name of a .npy tensor is empty. E::bad_option for others.
std::vector<NamedTensor> read_tensor_file(const std::string& path);

/// The contents of an .npy file in memory; `what` names it in errors.
Tensor parse_npy(std::string_view bytes, const std::string& what);
std::string encode_npy(const Tensor& tensor);

}  // namespace opfuse
