// ValueInfoProto { name = 1, type = 2 { tensor_type = 1 { elem_type = 1, shape = 2 { dim = 1 { value = 1 | param = 2
// }}}}}
#include "onnx/value_info.hpp"

#include "onnx/tensor_proto.hpp"

namespace opfuse::onnx {

std::string encode_value_info(Bytes name, const TensorType& type) {
  Encoder tensor, proto, info;
  tensor.integer(1, onnx_type_of(type.dtype));
  if (type.shape.ranked) {
    Encoder shape;
    for (const Dim& dim : type.shape.dims) {
      Encoder one;
      if (dim.is_constant())
        one.integer(1, dim.value());
      else
        one.bytes(2, dim.op() == DimOp::symbol ? dim.symbol_name() : dim.text());
      shape.message(1, one);
    }
    tensor.message(2, shape);
  }
  proto.message(1, tensor);
  info.bytes(1, name);
  if (type.dtype != DType::unknown) info.message(2, proto);
  return info.text();
}

}  // namespace opfuse::onnx
