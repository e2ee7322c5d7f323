// Tensor maps of launches as JSON: in artifacts, and in the cache of kernels.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "tensor/tensor_map.hpp"

namespace opfuse {

nlohmann::json tensor_maps_json(const std::vector<TensorMap>& maps);
/// E::bad_file where a map is none: its lists do not fit each other, or `buffers` has no such one.
std::vector<TensorMap> tensor_maps_of(const nlohmann::json& list, size_t buffers);

}  // namespace opfuse
