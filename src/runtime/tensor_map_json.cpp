// [buffer, type, offset, sizes, strides, box, steps, low, high]
#include "runtime/tensor_map_json.hpp"

#include "base/json_fields.hpp"

namespace opfuse {
namespace {

using nlohmann::json;

json dims_json(const std::vector<Dim>& dims) {
  json list = json::array();
  for (const Dim& d : dims) list.push_back(d.text());
  return list;
}

std::vector<Dim> dims_of(const json& list) {
  std::vector<Dim> dims;
  for (const json& d : listed(list)) dims.push_back(Dim::parse(d.get<std::string>()));
  return dims;
}

bool whole_map(const TensorMap& map, size_t buffers) {
  const size_t rank = map.sizes.size();
  if (map.buffer < 0 || static_cast<size_t>(map.buffer) >= buffers || map.strides.size() + 1 != rank) return false;
  if (!map.image()) return rank >= 1 && rank <= 5 && map.box.size() == rank && map.steps.empty() && map.high.empty();
  return rank >= 3 && rank <= 5 && map.box.size() == 2 && map.steps.size() == rank && map.low.size() + 2 == rank &&
         map.high.size() + 2 == rank;
}

}  // namespace

json tensor_maps_json(const std::vector<TensorMap>& maps) {
  json list = json::array();
  for (const TensorMap& m : maps)
    list.push_back({m.buffer, name_of(m.dtype), m.offset, dims_json(m.sizes), dims_json(m.strides), m.box, m.steps,
                    m.low, m.high});
  return list;
}

std::vector<TensorMap> tensor_maps_of(const json& list, size_t buffers) {
  std::vector<TensorMap> maps;
  for (const json& m : listed(list)) {
    const auto dtype = parse_dtype(listed(m, 9).at(1).get<std::string>());
    maps.push_back({whole<int>(m.at(0)), dtype.value_or(DType::unknown), whole<int64_t>(m.at(2)), dims_of(m.at(3)),
                    dims_of(m.at(4)), wholes<int64_t>(m.at(5)), wholes<int64_t>(m.at(6)), wholes<int64_t>(m.at(7)),
                    wholes<int64_t>(m.at(8))});
    if (!dtype || !whole_map(maps.back(), buffers)) throw fail(E::bad_file, "a launch has a tensor map that is none");
  }
  return maps;
}

}  // namespace opfuse
