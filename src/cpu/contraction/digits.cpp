#include "cpu/contraction/digits.hpp"

#include "cpu/contraction/codes.hpp"
#include "cpu/contraction/decoded_weights.hpp"

namespace opfuse {

int64_t chunk_of_digits(const CodedWeights& coded) {
  // longer ones would share an exponent with elements far away, and leave the whole numbers that floats hold
  for (int64_t chunk = kLongestChunk; chunk >= 16; chunk /= 2)
    if (coded.block % chunk == 0) return chunk;
  return 0;
}

int64_t common_zero(const CodedWeights& coded) {
  return coded.zeros >= 0 ? int64_t{1} << (coded.bits - 1) : coded.zero;
}

bool may_multiply_digits(const Stage& stage, const ContractionView& view, const std::vector<ParamLayout>& layouts,
                         const TargetInfo& target) {
  if (!view.coded || view.types.data != DType::f32 || view.value.op() != ExprOp::read) return false;
  if (!has_byte_products(target) || chunk_of_digits(*view.coded) == 0) return false;
  if (rows_of_product(stage, view).constant().value_or(1) != 1) return false;
  const Read& data = stage.reads[static_cast<size_t>(view.data)];
  const ParamLayout& lies = layouts[static_cast<size_t>(data.index)];
  const auto channel = static_cast<size_t>(view.data_channel_dim);
  return lies.layout.blocks.empty() && lies.strides[channel] == Dim(1) &&
         data.map.dims[channel] == IndexExpr{{{1, view.channel}}, 0, {}};
}

}  // namespace opfuse
