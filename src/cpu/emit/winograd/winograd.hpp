// Winograd F(h x w, 3x3), fused: a chunk of tiles passes through input transform, products and output transform with
// everything between them in scratch.
//
//   scratch [outside][points][C/lanes][tiles][lanes]    transformed data of the chunk
//                    [points][tiles][block]             products of one block of output channels
//                    [results of one tile][lanes]
//
// Sums of codes are the same in whole numbers (tensor/winograd_codes.hpp): transformed data are i16, two channels in
// a word of scratch, and a word of products is an i32.
#pragma once

#include "cpu/emit/stage.hpp"
#include "cpu/winograd/winograd.hpp"

namespace opfuse::cpu {

inline constexpr int64_t kHalfOfCodes = 128;  ///< i8 data + 128 are u8

class WinogradEmitter {
 public:
  WinogradEmitter(Kernel& k, StageEmitter& stage, const WinogradView& view);

  int64_t blocks() const { return blocks_; }  ///< of output channels
  Dim tiles() const;                          ///< of all images
  void emit(const Env& env, Value* ob0, Value* ob1, Value* t0, Value* t1);

 private:
  Kernel& k_;
  StageEmitter& s_;
  const WinogradView& view_;
  WinogradTile tile_;
  bool codes_;
  int64_t lanes_, vectors_, block_, channels_, blocks_, width_, capacity_, points_, prefetched_;
  int64_t words_, vector_words_;    ///< of a group's channels, of a vector of them: transformed
  int64_t rows_, columns_;          ///< tiles of an image
  int64_t data_point_, sum_point_;  ///< words between points of transformed data, of products
  Value *outside_, *data_, *sums_, *results_;
  std::vector<llvm::AllocaInst*> acc_;

  Operand& image() { return s_.reads[static_cast<size_t>(view_.contraction.data)]; }
  Operand& weights() { return s_.reads[static_cast<size_t>(view_.contraction.weights)]; }
  const IndexMap& image_map() const { return s_.stage.reads[static_cast<size_t>(view_.contraction.data)].map; }
  int64_t extent(int axis) const { return axis_extent(s_.stage, axis).value(); }
  Value* words(Value* base, Value* offset) { return k_.element(base, DType::f32, offset); }
  llvm::Type* word_type() { return codes_ ? k_.b.getInt32Ty() : k_.b.getFloatTy(); }
  llvm::Type* vector_type() { return k_.lanes(word_type(), static_cast<int>(lanes_)); }
  Value* load_vector(Value* at);
  void store_vector(Value* at, Value* value);
  void place_outside();

  void emit_chunk(const Env& env, Value* ob0, Value* ob1, Value* t0, Value* count);
  void move_to_tile(Env& env, Value* tile) const;

  // winograd_input.cpp
  void emit_input(const Env& env, Value* t0, Value* count);
  void emit_input_tile(const Env& env, Value* to, bool edge);
  Value* load_image(Value* at);
  Value* inside(const Env& env, const SlidingDim& d, int64_t tap, int64_t taps);

  // winograd_product.cpp
  void emit_products(Value* ob, Value* count);
  void emit_register_tile(Value* data, Value* weights, Value* sums, Value* ahead);
  void emit_steps(Value* data, Value* weights, Value* lane, int64_t lanes);
  Value* add_product(Value* x, Value* w, Value* sum);

  // winograd_output.cpp
  void emit_output(const Env& env, Value* ob, Value* t0, Value* count);
  void emit_output_tile(Env env, Value* from);
  Value* divided(Value* result);
  void store_results(const Env& env, const std::vector<std::vector<Value*>>& results);
  void store_some_results(const Env& env, const std::vector<std::vector<Value*>>& results);
};

}  // namespace opfuse::cpu
