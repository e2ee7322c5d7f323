// TensorProto <-> Tensor.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "onnx/wire.hpp"
#include "tensor/tensor.hpp"

namespace opfuse::onnx {

/// ONNX's element type number; unknown for types opfuse does not have (complex).
DType dtype_of(int64_t onnx_type);
int64_t onnx_type_of(DType dtype);
std::string onnx_type_name(int64_t onnx_type);  ///< "FLOAT8E4M3FN"

/// Makes tensors out of TensorProtos: shares the model's mapping where the data is aligned, copies where it is not.
class TensorReader {
 public:
  /// `owner` keeps the bytes alive that the protos point into; `folder` is where external data lies.
  TensorReader(std::shared_ptr<const void> owner, std::string folder, std::string model_path)
      : owner_(std::move(owner)), folder_(std::move(folder)), model_path_(std::move(model_path)) {}

  /// Throws E::bad_initializer, bad_dimension, bad_external_data or unsupported_dtype; the message names `what`
  /// ("initializer \"w\"").
  Tensor read(const TensorProto& proto, const std::string& what);

 private:
  Tensor wrap(DType dtype, const std::vector<int64_t>& sizes, Bytes data, std::shared_ptr<const void> owner);
  Tensor read_external(const TensorProto& proto, DType dtype, size_t bytes, const std::string& what);

  std::shared_ptr<const void> owner_;
  std::string folder_, model_path_;
  std::map<std::string, std::shared_ptr<const void>> external_;
};

/// Types of four and two bits lie packed in files, the first element lowest in its byte; in memory each has a byte.
bool is_packed(DType dtype);
std::string packed(const Tensor& tensor);

/// Encodes with raw_data.
void encode_tensor(const Tensor& tensor, Bytes name, Encoder& into);

}  // namespace opfuse::onnx
