#include "quantize/data_powers.hpp"

#include "match/pattern.hpp"
#include "ops/gemm.hpp"
#include "ops/is_a.hpp"
#include "quantize/calibrate.hpp"

namespace opfuse::quantization {
namespace {

bool has_channels(const Node& product) {
  const Value* data = product.input(0);
  const Shape& shape = data->type.shape;
  if (data->is_constant() || data->name.empty() || data->type.dtype != DType::f32) return false;
  if (is_a<Gemm>(product) && product.as<Gemm>().transA) return false;
  return shape.ranked && shape.rank() > 0 && shape[shape.rank() - 1].is_constant();
}

Placement data_of_products(const Graph& model) {
  Placement placement;
  for (const Node* node : model.nodes()) {
    if (!is_matrix_product(*node) || !has_channels(*node)) continue;
    const Value* data = node->input(0);
    if (!placement.find(data->id))
      placement.tensors.push_back({.tensor = data->name, .value = data->id, .readers = {node->id}});
  }
  return placement;
}

}  // namespace

DataPowers measure_powers(const Graph& model, const Samples& samples, const RunOptions& options) {
  const Placement placement = data_of_products(model);
  DataPowers powers;
  if (placement.tensors.empty()) return powers;
  ObservedModel observed(model, names_of(placement), options);
  const CalibrateOptions with{.histograms = false, .channels = true, .run = options};
  const Calibration found = calibrate(model, placement, calibrated_tensors(placement), observed, samples, with);
  for (const TensorStatistics& s : found.tensors) {
    if (s.per_channel == 0) continue;
    std::vector<double>& row = powers[s.tensor];
    for (double square : s.channel_squares) row.push_back(square / static_cast<double>(s.per_channel));
  }
  return powers;
}

}  // namespace opfuse::quantization
