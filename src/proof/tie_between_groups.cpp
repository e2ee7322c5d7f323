// A tie that a launch decides by what the launches before it rounded. Each launch is proven on stored numbers, so the
// tie is in no proof; the graph in doubles (the chain) may still decide it the other way, and is another from there on.
//
//     stored s, chain c, nearly alike  ->  [min, max] of both through the region of the launch: a result that is
//     far off, and whose interval holds a step, is explained
#include <algorithm>
#include <cmath>

#include "ir/value_name.hpp"
#include "program/body.hpp"
#include "program/routine_launches.hpp"
#include "proof/prove_groups.hpp"

namespace opfuse {
namespace {

constexpr double kAlike = 1e-4;  ///< of the largest: what roundings explain

double alike(const Tensor& chain) {
  if (!is_float(chain.dtype())) return 0;
  double largest = 0;
  for (int64_t i = 0, n = chain.elements(); i < n; ++i)
    if (const double v = std::fabs(chain.real(i)); std::isfinite(v)) largest = std::max(largest, v);
  return kAlike * largest;
}

bool apart(double a, double b, double most) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) != std::isnan(b);
  return a != b && !(std::fabs(a - b) <= most);
}

bool are_alike(const Tensor& stored, const Tensor& chain) {
  if (stored.sizes() != chain.sizes()) return false;
  const double most = alike(chain);
  for (int64_t i = 0, n = chain.elements(); i < n; ++i)
    if (apart(stored.real(i), chain.real(i), most)) return false;
  return true;
}

/// The chain's numbers, which may be those that were stored.
BoundedTensor between(const Tensor& stored, const Tensor& chain) {
  BoundedTensor both(chain.cast(is_float(stored.dtype()) ? DType::f64 : stored.dtype()));
  both.dtype = stored.dtype();
  both.error.assign(static_cast<size_t>(chain.elements()), {});
  both.tie.assign(both.error.size(), 0);
  for (int64_t i = 0, n = chain.elements(); i < n; ++i)
    if (const double by = stored.real(i) - chain.real(i); std::isfinite(by))
      both.error[static_cast<size_t>(i)] = {std::max(0.0, -by), std::max(0.0, by)};
  return both;
}

/// Every element that is far off may be: a step is in its reach.
bool is_explained(const Tensor& stored, const Tensor& chain, const std::vector<const BoundedTensor*>& parts) {
  if (stored.sizes() != chain.sizes()) return false;
  const double most = alike(chain);
  const BoundedTensor all = merged(parts);
  for (int64_t i = 0, n = chain.elements(); i < n; ++i) {
    const auto at = static_cast<size_t>(i);
    const double by = stored.real(i) - chain.real(i);
    if (!apart(stored.real(i), chain.real(i), most)) continue;
    if (!all.tie[at] || !(by <= all.error[at].above + most) || !(-by <= all.error[at].below + most)) return false;
  }
  return true;
}

}  // namespace

/// The first launch whose results are not alike, if its operands are and ties explain it; else nothing.
std::optional<std::string> GroupProver::tie_between_groups(const std::vector<Tensor>& inputs) {
  GroupValues::Known given;
  for (size_t i = 0; i < inputs.size(); ++i) given[value_name(*graph_.inputs()[i])] = inputs[i];
  const GroupValues::Known chain = oracle_.all(given);
  std::optional<std::string> found;
  bool over = false;
  each_launch([&](size_t index, const Image& image) {
    const Launch& launch = runner_.program().launches[index];
    const Launches together = runner_.writers_with(index);
    if (over || together.back() != index) return;
    std::map<int, const Tensor*> apart_results;
    for (const size_t l : together)
      for (size_t p = 0; p < runner_.program().launches[l].buffers.size(); ++p) {
        const int buffer = runner_.program().launches[l].buffers[p];
        if (buffer < 0 || runner_.program().launches[l].region.params.size() <= p) continue;
        if (runner_.program().launches[l].region.params[p].role != ParamRole::output) continue;
        const auto exact = chain.find(key(buffer, image));
        if (exact != chain.end() && !are_alike(operand(buffer, image), exact->second))
          apart_results[buffer] = &exact->second;
      }
    if (apart_results.empty()) return;
    over = true;
    if (!launch.reference && launch.steps.empty() && explains(together, image, chain, apart_results))
      found = launch.name;
  });
  return found;
}

bool GroupProver::explains(const Launches& together, const Image& image, const GroupValues::Known& chain,
                           const std::map<int, const Tensor*>& apart_results) {
  std::map<int, BoundedTensor> moved;
  std::vector<BoundedRun> bounded;
  for (const size_t l : together) {
    const Launch& launch = runner_.program().launches[l];
    BoundOptions options = bounds_of(launch, image, Numbers::of_graph);
    std::vector<Tensor> params(launch.buffers.size());
    for (size_t p = 0; p < launch.buffers.size(); ++p) {
      if (launch.region.params[p].role == ParamRole::output) continue;
      const int b = launch.buffers[p];
      const Buffer& buffer = runner_.program().buffers[static_cast<size_t>(b)];
      params[p] = buffer.kind == BufferKind::constant ? buffer.constant : operand(b, image);
      const auto exact = chain.find(key(b, image));
      if (buffer.kind == BufferKind::constant || exact == chain.end()) continue;
      if (!are_alike(params[p], exact->second)) return false;
      options.bounded[p] = &moved.try_emplace(b, between(params[p], exact->second)).first->second;
    }
    bounded.push_back(bound_errors(launch.region, params, runner_.symbols(), options));
  }
  return std::all_of(apart_results.begin(), apart_results.end(), [&](const auto& result) {
    return is_explained(operand(result.first, image), *result.second, parts_of(together, bounded, result.first));
  });
}

}  // namespace opfuse
