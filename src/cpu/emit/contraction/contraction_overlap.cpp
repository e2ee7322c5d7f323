// The epilogue of a tile between the multiply-adds of the next:
//
//   for all tiles of a part:
//     acc = 0
//     acc += first channel step; between its multiply-adds: epilogue of the sums at rest, stored where they lie
//     acc += other channels
//     the sums come to rest
//   epilogue of the sums at rest
//
// The first tile has none before it: it stores the epilogue of whatever rests there at its own place, where the next
// one stores the right results. All tiles have the same shape (overlapped_tile).
#include <algorithm>

#include "cpu/emit/contraction/contraction.hpp"
#include "cpu/emit/take_turns.hpp"

namespace opfuse::cpu {

/// The first tile of a part: item `item` of block `ob`.
void ContractionEmitter::start_rest(Value* ob, Value* item) {
  const auto place = [&](llvm::AllocaInst*& at, Value* value) {
    if (!at) at = k_.variable(k_.b.getInt64Ty());
    k_.b.CreateStore(value, at);
  };
  const bool rows = row_axis_ >= 0;
  place(rest_block_, ob);
  place(rest_row_, rows ? item : k_.i64(0));
  place(rest_pixel_, rows ? k_.i64(0) : k_.mul(item, k_.i64(width_)));
  llvm::Type* type = acc_[0]->getAllocatedType();
  while (rest_.size() < static_cast<size_t>(width_ * vectors_)) rest_.push_back(k_.zeroed_variable(type));
}

/// Their results are where the sums rest.
std::vector<StageEmitter::Point> ContractionEmitter::points_of_rest(const Env& env, const TileRun& run) {
  const auto load = [&](llvm::AllocaInst* at) { return k_.b.CreateLoad(at->getAllocatedType(), at); };
  Env at = env;
  at.axes[static_cast<size_t>(view_.pixel)] = {load(rest_pixel_), false, 1};
  if (row_axis_ >= 0) at.axes[static_cast<size_t>(row_axis_)] = {load(rest_row_), false, 1};
  std::vector<StageEmitter::Point> points = points_of(at, load(rest_block_), run, false);
  for (StageEmitter::Point& point : points)
    point.results[0] = rest_[static_cast<size_t>(std::find(acc_.begin(), acc_.end(), point.results[0]) - acc_.begin())];
  return points;
}

void ContractionEmitter::emit_overlapped_tile(const Env& env, Value* ob, const TileRun& run) {
  if (fetch_outputs_) prefetch_epilogue(env, ob, run);
  start_accumulators(run, nullptr);
  const std::vector<StageEmitter::Point> points = points_of_rest(env, run);
  llvm::Instruction* first = &k_.b.GetInsertBlock()->back();
  Env at = env;
  at.axes[static_cast<size_t>(view_.channel)] = {k_.i64(0), false, step_};
  emit_steps(at, all_pixels(run), run, step_, step_);
  take_turns_behind(k_, first, points.size(),
                    [&](size_t i) { s_.store_resting(points[i], acc_[0]->getAllocatedType()); });
  emit_channels(env, run, 1);
  for (size_t i = 0; i < points.size(); ++i)
    k_.b.CreateStore(k_.b.CreateLoad(acc_[i]->getAllocatedType(), acc_[i]), rest_[i], true);
  k_.b.CreateStore(ob, rest_block_);
  if (row_axis_ >= 0) k_.b.CreateStore(env.axes[static_cast<size_t>(row_axis_)].base, rest_row_);
  k_.b.CreateStore(env.axes[static_cast<size_t>(view_.pixel)].base, rest_pixel_);
}

void ContractionEmitter::finish_rest(const Env& env) {
  const std::vector<StageEmitter::Point> points = points_of_rest(env, runs_.front());
  take_turns(k_, points.size(), [&](size_t i) { s_.store_resting(points[i], acc_[0]->getAllocatedType()); });
}

}  // namespace opfuse::cpu
