// Operator records: what inference may ask, and the registry.
#include "ir/op_info.hpp"

#include "base/fail.hpp"

namespace opfuse {

const TensorType& Inference::type(size_t i) const {
  if (!has(i)) throw fail(E::arity_mismatch, "input {} is missing", i);
  return types_[i];
}

void Inference::require_rank(size_t i, size_t rank) const {
  if (shape(i).rank() != rank) {
    throw fail(E::rank_mismatch, "input {} has {} dimensions, {} expected: {}", i, shape(i).rank(), rank,
               type(i).text());
  }
}

std::vector<int64_t> Inference::integers(size_t i, std::string_view what) const {
  const Tensor* tensor = constant(i);
  if (tensor == nullptr) {
    throw fail(E::unknown_dimension, "{} (input {}) must be a constant", what, i)
        .hint("it is computed while the model runs; bind the input sizes with --dim");
  }
  return tensor->to_i64();
}

void OpRegistry::add(OpInfo info) {
  OPFUSE_CHECK(find(info.name) == nullptr, "operator {} is registered twice", info.name);
  infos_.push_back(std::make_unique<OpInfo>(std::move(info)));
}

void OpRegistry::add_internal(const OpInfo* info) {
  OPFUSE_CHECK(find(info->name) == nullptr, "operator {} is registered twice", info->name);
  internal_.push_back(info);
}

const OpInfo* OpRegistry::find(std::string_view name) const {
  for (const auto& info : infos_) {
    if (info->name == name) return info.get();
  }
  for (const OpInfo* info : internal_) {
    if (info->name == name) return info;
  }
  return nullptr;
}

std::vector<const OpInfo*> OpRegistry::all() const {
  std::vector<const OpInfo*> out;
  for (const auto& info : infos_) out.push_back(info.get());
  return out;
}

}  // namespace opfuse
