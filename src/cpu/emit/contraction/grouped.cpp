// Grouped contractions whose output vectors hold lanes of several groups (groups narrower than a
// vector, or not a multiple of it). Lane l needs channel (o / group_out) * depth + i:
//
//   permuted   the channels of all the vector's groups are one or a few whole vectors of the data:
//              load them once per pixel, put lanes in place by a constant shuffle per i
//   blended    one broadcast per group of the vector, blended under masks made once per block
#include <algorithm>

#include "cpu/emit/contraction/contraction.hpp"

namespace opfuse::cpu {

/// Lane masks and first channels of the groups that the vector starting at channel `first` touches.
void ContractionEmitter::start_groups(Value* first) {
  auto& b = k_.b;
  group_masks_.clear();
  group_starts_.clear();
  const int64_t size = view_.group_out, all = axis_extent(s_.stage, view_.vec).value() / size;
  const int64_t touched = size % block_ == 0 ? 1 : (lanes_ - 1 + size - 1) / size + 1;
  Value* group = b.CreateUDiv(first, k_.i64(size));
  llvm::Type* type = k_.lanes(b.getInt32Ty(), static_cast<int>(lanes_));
  Value* lane = b.CreateTrunc(k_.iota(static_cast<int>(lanes_)), type);
  Value* offset = k_.splat(b.CreateTrunc(b.CreateURem(first, k_.i64(size)), b.getInt32Ty()), static_cast<int>(lanes_));
  Value* number = b.CreateUDiv(b.CreateAdd(lane, offset), llvm::ConstantInt::get(type, static_cast<uint64_t>(size)));
  for (int64_t j = 0; j < touched; ++j) {
    // lanes past the last group belong to padding; they read the last group
    Value* at = j == 0 ? group : k_.min(b.CreateAdd(group, k_.i64(j)), k_.i64(all - 1));
    group_starts_.push_back(k_.mul(at, k_.i64(size)));
    if (j) group_masks_.push_back(b.CreateICmpEQ(number, llvm::ConstantInt::get(type, static_cast<uint64_t>(j))));
  }
}

/// The vector of channel `channel` of every lane's group; `at` is the first channel of the first group.
Value* ContractionEmitter::permuted(const Env&, Value* at, int64_t channel) {
  auto& b = k_.b;
  const int64_t depth = channel_depth(s_.stage, view_), size = view_.group_out;
  const int64_t span = lanes_ / size * depth;
  const auto vector_type = k_.lanes(k_.memory_type(types().data), static_cast<int>(std::min(span, lanes_)));
  const auto& layout = data().layout;
  const auto dim = std::find(layout.order.begin(), layout.order.end(), view_.data_channel_dim) - layout.order.begin();
  Value* block = k_.dim(data().strides[static_cast<size_t>(dim)]);
  std::vector<int> whole;
  Value* x = nullptr;
  for (int64_t part = 0; part * lanes_ < span; ++part) {
    Value* p = k_.element(at, types().data, k_.mul(block, k_.i64(part)));
    Value* v = b.CreateAlignedLoad(vector_type, p, data_align());
    // lanes whose channel lies in this part
    std::vector<int> mask;
    for (int64_t l = 0; l < lanes_; ++l) {
      const int64_t c = l / size * depth + channel - part * lanes_;
      mask.push_back(c >= 0 && c < std::min(span, lanes_) ? static_cast<int>(c) : -1);
    }
    Value* placed = b.CreateShuffleVector(v, mask);
    if (!x) {
      x = placed;
      continue;
    }
    std::vector<int> merge;
    for (int64_t l = 0; l < lanes_; ++l)
      merge.push_back(static_cast<int>(mask[static_cast<size_t>(l)] >= 0 ? lanes_ + l : l));
    x = b.CreateShuffleVector(x, placed, merge);
  }
  return x;
}

void ContractionEmitter::emit_grouped(const Env& env, const Address& w, uint64_t pixels, const TileRun& run,
                                      int64_t lanes) {
  auto& b = k_.b;
  const IndexMap& map = s_.stage.reads[static_cast<size_t>(view_.data)].map;
  Value* weights_step =
      view_.channel < 0
          ? k_.i64(0)
          : axis_step(k_, weights(), s_.stage.reads[static_cast<size_t>(view_.weights)].map, view_.channel);
  Value* pixel_step = view_.pixel < 0 ? k_.i64(0) : axis_step(k_, data(), map, view_.pixel);
  Value* row_step = row_run_ ? axis_step(k_, data(), map, row_axis_) : k_.i64(0);
  Value* weights_at = k_.element(weights().base, types().weights, k_.add(w.scalar, k_.i64(w.constant)));
  const int64_t count = run.width * tile_rows_;
  std::vector<Value*> acc = load_accumulators(count);
  const auto start_of = [&](const Env& at) {
    const Address a = address_of(k_, data(), map, at, nullptr);
    return k_.element(data().base, types().data, k_.add(a.scalar, k_.i64(a.constant)));
  };
  Value* first = grouped_ == 1 ? start_of(env) : nullptr;
  for (int64_t i = 0; i < lanes; ++i) {
    std::vector<Value*> starts;  // blended: this channel in each group of the vector
    for (size_t j = 0; grouped_ == 2 && j < group_starts_.size(); ++j) {
      Env at = env;
      at.axes[static_cast<size_t>(view_.vec)] = {group_starts_[j], false, view_.group_out};
      if (view_.channel >= 0) at.axes[static_cast<size_t>(view_.channel)].plus = i;
      starts.push_back(start_of(at));
    }
    const std::vector<Value*> w_vectors = load_weights({weights_at}, weights_step, i);
    for (int64_t p = 0; p < count; ++p) {
      if (!(pixels >> p & 1)) continue;
      Value* offset = k_.add(k_.mul(pixel_step, k_.i64(p % run.width)), k_.mul(row_step, k_.i64(p / run.width)));
      Value* x = nullptr;
      if (grouped_ == 1) x = permuted(env, k_.element(first, types().data, offset), i);
      for (size_t j = 0; j < starts.size(); ++j) {
        Value* v = b.CreateAlignedLoad(k_.memory_type(types().data), k_.element(starts[j], types().data, offset),
                                       data_align());
        v = k_.splat(v, static_cast<int>(lanes_));
        x = x ? b.CreateSelect(group_masks_[j - 1], v, x) : v;
      }
      multiply(acc, x, w_vectors, p);
    }
  }
  store_accumulators(acc, count);
}

}  // namespace opfuse::cpu
