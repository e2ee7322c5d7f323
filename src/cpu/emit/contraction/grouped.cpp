// Grouped contractions whose output vectors hold lanes of several groups (groups narrower than a
// vector, or not a multiple of it). Lane l needs channel (o / group_out) * depth + i:
//
//   permuted   the channels of all the vector's groups are one or a few whole vectors of the data:
//              load them once per pixel, put lanes in place by a constant shuffle per i
//   blended    one broadcast per group of the vector, blended under masks made once per block

#include <algorithm>

#include "cpu/emit/contraction/policies.hpp"
#include "cpu/emit/contraction/products.hpp"

namespace opfuse::cpu {

Groups groups_from(const ContractionPlan& plan, Value* first) {
  Kernel& k = plan.k;
  auto& b = k.b;
  const auto lanes = static_cast<int>(plan.lanes);
  const int64_t size = plan.view.group_out, all = plan.channels() / size;
  const int64_t touched = size % plan.block == 0 ? 1 : (plan.lanes - 1 + size - 1) / size + 1;
  Value* group = b.CreateUDiv(first, k.i64(size));
  llvm::Type* type = k.lanes(b.getInt32Ty(), lanes);
  Value* lane = b.CreateTrunc(k.iota(lanes), type);
  Value* offset = k.splat(b.CreateTrunc(b.CreateURem(first, k.i64(size)), b.getInt32Ty()), lanes);
  Value* number = b.CreateUDiv(b.CreateAdd(lane, offset), llvm::ConstantInt::get(type, static_cast<uint64_t>(size)));
  Groups groups;
  for (int64_t j = 0; j < touched; ++j) {
    // lanes past the last group belong to padding; they read the last group
    Value* at = j == 0 ? group : k.min(b.CreateAdd(group, k.i64(j)), k.i64(all - 1));
    groups.starts.push_back(k.mul(at, k.i64(size)));
    if (j) groups.masks.push_back(b.CreateICmpEQ(number, llvm::ConstantInt::get(type, static_cast<uint64_t>(j))));
  }
  return groups;
}

namespace {

/// The vector of channel `channel` of every lane's group; `at` is the first channel of the first group.
Value* permuted(const ContractionPlan& plan, Value* at, int64_t channel) {
  Kernel& k = plan.k;
  const int64_t lanes = plan.lanes, depth = plan.depth(), size = plan.view.group_out;
  const int64_t span = lanes / size * depth;
  const DType dtype = plan.types().data;
  llvm::Type* type = k.lanes(k.memory_type(dtype), static_cast<int>(std::min(span, lanes)));
  const auto& layout = plan.data().layout;
  const auto dim = std::find(layout.order.begin(), layout.order.end(), plan.view.data_channel_dim);
  Value* block = k.dim(plan.data().strides[static_cast<size_t>(dim - layout.order.begin())]);
  Value* x = nullptr;
  for (int64_t part = 0; part * lanes < span; ++part) {
    Value* from = k.element(at, dtype, k.mul(block, k.i64(part)));
    Value* v = k.b.CreateAlignedLoad(type, from, plan.data_align());
    // lanes whose channel lies in this part
    std::vector<int> mask, merge;
    for (int64_t l = 0; l < lanes; ++l) {
      const int64_t c = l / size * depth + channel - part * lanes;
      mask.push_back(c >= 0 && c < std::min(span, lanes) ? static_cast<int>(c) : -1);
      merge.push_back(static_cast<int>(mask.back() >= 0 ? lanes + l : l));
    }
    Value* placed = k.b.CreateShuffleVector(v, mask);
    x = x ? k.b.CreateShuffleVector(x, placed, merge) : placed;
  }
  return x;
}

}  // namespace

void TileProducts::step_of_groups(const Env& env, const Address& weights, int64_t channels, uint64_t pixels) const {
  const DType type = plan_.types().data;
  Value* weights_step = plan_.weights_step();
  const PixelSteps steps(plan_, tile_);
  Value* first_weights =
      k_.element(plan_.weights.base, plan_.types().weights, k_.add(weights.scalar, k_.i64(weights.constant)));
  const auto start_of = [&](const Env& at) {
    const Address a = address_of(k_, plan_.data(), plan_.map_of(plan_.view.data), at, nullptr);
    return k_.element(plan_.data().base, type, k_.add(a.scalar, k_.i64(a.constant)));
  };
  const auto at_pixel = [&](Value* start, int64_t p) {
    return k_.element(start, type, steps.offset(k_, tile_, p, k_.i64(0)));
  };
  if (plan_.schedule.grouped == 1) {
    Value* first = start_of(env);
    return multiply({first_weights}, weights_step, channels, pixels, [&](int64_t channel) -> OfPixel {
      return [&, channel](int64_t p) { return Factor{permuted(plan_, at_pixel(first, p), channel)}; };
    });
  }
  multiply({first_weights}, weights_step, channels, pixels, [&](int64_t channel) -> OfPixel {
    std::vector<Value*> starts;  // this channel in each group of the vector
    for (Value* start : tile_.groups.starts) {
      Env at = at_axis(env, plan_.view.vec, start, plan_.view.group_out);
      if (plan_.view.channel >= 0) at.axes[static_cast<size_t>(plan_.view.channel)].plus = channel;
      starts.push_back(start_of(at));
    }
    return [&, starts](int64_t p) {
      Value* x = nullptr;
      for (size_t j = 0; j < starts.size(); ++j) {
        Value* v = k_.b.CreateAlignedLoad(plan_.product.word, at_pixel(starts[j], p), plan_.data_align());
        v = k_.splat(v, static_cast<int>(plan_.lanes));
        x = x ? k_.b.CreateSelect(tile_.groups.masks[j - 1], v, x) : v;
      }
      return Factor{x};
    };
  });
}

}  // namespace opfuse::cpu
