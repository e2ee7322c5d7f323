// A product around a tile that the target's file brings along:
//
//   for tiles of rows of this part:
//     panel[rows][K] = prologue(data)            scratch; zeros beyond the last row and behind K
//     for blocks of columns of this part:
//       sums[rows][columns] = 0                  scratch
//       kIntrinsicSymbol(sums, panel, block of weights, K)
//       epilogue of the rows and columns that exist, as any other skeleton's
#include "cpu/intrinsic/intrinsic.hpp"

#include "base/integers.hpp"
#include "cpu/emit/emitters.hpp"
#include "cpu/emit/module.hpp"
#include "cpu/emit/parts.hpp"

namespace opfuse::cpu {
namespace {

constexpr int64_t kLine = 64;

class IntrinsicEmitter {
 public:
  explicit IntrinsicEmitter(Kernel& k)
      : k_(k),
        s_(k, 0),
        view_(std::get<ContractionView>(view_contraction(k.spec.region, 0))),
        schedule_(typed<IntrinsicSchedule>(k.spec.schedule)),
        row_axes_(intrinsic_row_axes(s_.stage, view_)),
        columns_(axis_extent(s_.stage, view_.vec).value()),
        depth_(axis_extent(s_.stage, view_.channel).value()),
        padded_(ceil_of(depth_, schedule_.depth) * schedule_.depth) {
    for (int axis : row_axes_) rows_ = rows_ * s_.stage.domain[static_cast<size_t>(axis)];
    while (2 * width_ <= lanes_of(k.target) && schedule_.columns % (2 * width_) == 0) width_ *= 2;
    const int64_t panel = ceil_of(4 * schedule_.rows * padded_, kLine) * kLine;
    panel_ = k.scratch;
    sums_ = k.element(k.scratch, DType::f32, k.i64(panel / 4));
    k.scratch_bytes = panel + 4 * schedule_.rows * schedule_.columns;
  }

  void emit() {
    const Dim parts_p = int64_t{schedule_.parts_p}, parts_o = int64_t{schedule_.parts_o};
    k_.parts = parts_p * parts_o;
    const Dim tiles = ceil_div(rows_, schedule_.rows), blocks = ceil_of(columns_, schedule_.columns);
    const PartRange rows = cut_range(k_, tiles, k_.rem(k_.part, k_.dim(parts_p)), parts_p);
    const PartRange columns = cut_range(k_, blocks, k_.div(k_.part, k_.dim(parts_p)), parts_o);
    k_.loop(rows.begin, rows.end, 1, [&](Value* tile) {
      Value* first = k_.mul(tile, k_.i64(schedule_.rows));
      pack(first);
      k_.loop(columns.begin, columns.end, 1, [&](Value* block) {
        multiply(block);
        store(first, block);
      });
    });
  }

 private:
  Kernel& k_;
  StageEmitter s_;
  const ContractionView view_;
  const IntrinsicSchedule schedule_;
  const std::vector<int> row_axes_;
  const int64_t columns_, depth_, padded_;
  Dim rows_ = 1;
  int width_ = 1;  ///< lanes of a vector of columns
  Value *panel_ = nullptr, *sums_ = nullptr;

  Env at_row(Value* row, int width) {
    Env env = s_.fresh_env(width);
    for (size_t i = row_axes_.size(); i-- > 0;) {
      Value* extent = k_.dim(s_.stage.domain[static_cast<size_t>(row_axes_[i])]);
      env.axes[static_cast<size_t>(row_axes_[i])] = {i == 0 ? row : k_.rem(row, extent), false, 1};
      if (i > 0) row = k_.div(row, extent);
    }
    return env;
  }

  void put(Value* to, Value* offset, Value* value) {
    k_.b.CreateAlignedStore(value, k_.element(to, DType::f32, offset), llvm::Align(4));
  }

  void clear(Value* to, Value* from, int64_t elements) {
    const int width = lanes_of(k_.target);
    const int64_t whole = elements / width * width;
    const auto zeros = [&](int64_t begin, int64_t end, int step) {
      llvm::Type* type = k_.lanes(k_.b.getFloatTy(), step);
      k_.loop(k_.i64(begin), k_.i64(end), step, [&](Value* i) { put(to, k_.add(from, i), k_.zero(type)); });
    };
    zeros(0, whole, width);
    zeros(whole, elements, 1);
  }

  /// Rows of the data, each behind the other.
  void pack(Value* first) {
    const int width = lanes_of(k_.target);
    const int64_t whole = depth_ / width * width;
    k_.loop(k_.i64(0), k_.i64(schedule_.rows), 1, [&](Value* r) {
      Value *row = k_.add(first, r), *to = k_.mul(r, k_.i64(padded_));
      const auto channels = [&](int64_t begin, int64_t end, int step) {
        k_.loop(k_.i64(begin), k_.i64(end), step, [&](Value* channel) {
          Env env = at_row(row, step);
          env.axes[static_cast<size_t>(view_.channel)] = {channel, step > 1, step};
          put(panel_, k_.add(to, channel), k_.splat(s_.at(env).emit(view_.value, DType::f32), step));
        });
      };
      k_.branch(
          k_.b.CreateICmpSLT(row, k_.dim(rows_)),
          [&] {
            channels(0, whole, width);
            channels(whole, depth_, 1);
            clear(panel_, k_.add(to, k_.i64(depth_)), padded_ - depth_);
          },
          [&] { clear(panel_, to, padded_); });
    });
  }

  void multiply(Value* block) {
    clear(sums_, k_.i64(0), schedule_.rows * schedule_.columns);
    const auto weights = static_cast<size_t>(s_.stage.reads[static_cast<size_t>(view_.weights)].index);
    Value* pitch = k_.dim(k_.spec.layouts[weights].strides[0]);
    Value* from = k_.element(s_.reads[static_cast<size_t>(view_.weights)].base, DType::f32, k_.mul(block, pitch));
    llvm::Type* pointer = k_.b.getPtrTy();
    auto* type = llvm::FunctionType::get(k_.b.getVoidTy(), {pointer, pointer, pointer, k_.b.getInt64Ty()}, false);
    k_.b.CreateCall(k_.function->getParent()->getOrInsertFunction(kIntrinsicSymbol, type),
                    {sums_, panel_, from, k_.i64(padded_)});
  }

  void store(Value* first, Value* block) {
    Value* rows = k_.min(k_.i64(schedule_.rows), k_.sub(k_.dim(rows_), first));
    k_.loop(k_.i64(0), rows, 1, [&](Value* r) {
      for (int64_t v = 0; v < schedule_.columns; v += width_) {
        Value* column = k_.add(k_.mul(block, k_.i64(schedule_.columns)), k_.i64(v));
        if (columns_ % schedule_.columns == 0)
          store_vector(first, r, v, column);
        else
          k_.branch(k_.b.CreateICmpSLT(column, k_.i64(columns_)), [&] { store_vector(first, r, v, column); });
      }
    });
  }

  void store_vector(Value* first, Value* r, int64_t v, Value* column) {
    Env env = at_row(k_.add(first, r), width_);
    env.axes[static_cast<size_t>(view_.vec)] = {column, width_ > 1, width_};
    if (columns_ % width_ != 0)
      env.mask = k_.b.CreateICmpSLT(k_.iota(width_), k_.splat(k_.sub(k_.i64(columns_), column), width_));
    Value* place = k_.element(sums_, DType::f32, k_.add(k_.mul(r, k_.i64(schedule_.columns)), k_.i64(v)));
    s_.store_outputs(env, {k_.b.CreateAlignedLoad(k_.lanes(k_.b.getFloatTy(), width_), place, llvm::Align(4))});
  }
};

}  // namespace

void emit_intrinsic(Kernel& k) { IntrinsicEmitter(k).emit(); }

}  // namespace opfuse::cpu
