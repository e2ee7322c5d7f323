#include "onnx/declared_types.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "onnx/tensor_proto.hpp"

namespace opfuse::onnx {
namespace {

std::string text_of(const ValueType& type) {
  if (type.kind == TypeKind::other) return "a sequence, map, optional or sparse tensor";
  const DType dtype = dtype_of(type.elem_type);
  std::string text = dtype == DType::unknown ? onnx_type_name(type.elem_type) : std::string(name_of(dtype));
  if (!type.has_shape) return text;
  std::vector<std::string> dims;
  for (const Dimension& dim : type.dims)
    dims.push_back(dim.value ? std::to_string(*dim.value) : std::string(dim.param.empty() ? "?" : dim.param));
  return fmt::format("{}[{}]", text, fmt::join(dims, ","));
}

bool shapes_agree(const ValueType& declared, const Shape& found) {
  if (!declared.has_shape || !found.ranked) return true;
  if (declared.dims.size() != found.rank()) return false;
  for (size_t i = 0; i < declared.dims.size(); ++i) {
    const auto& value = declared.dims[i].value;
    const auto size = found[i].constant();
    if (value && *value >= 0 && size && *size != *value) return false;
  }
  return true;
}

}  // namespace

std::optional<Contradiction> contradiction(const ValueInfo& declared, const TensorType& found) {
  if (declared.type.kind == TypeKind::none || found.dtype == DType::unknown) return std::nullopt;
  const bool typed = declared.type.kind == TypeKind::tensor && declared.type.elem_type != 0;
  const bool same = typed ? dtype_of(declared.type.elem_type) == found.dtype : declared.type.kind == TypeKind::tensor;
  if (same && shapes_agree(declared.type, found.shape)) return std::nullopt;
  return Contradiction{text_of(declared.type), found.text(), same};
}

}  // namespace opfuse::onnx
