// Codes of weights in words (kernel/coded_weights.hpp) on their way into registers: a block of columns is one stream.
//
// Codes become floats without a conversion: as the last bits of 2^23, or of up to 4 bits by a table of 16 floats in a
// register, whose lookup takes no more than an index's last four bits.
#pragma once

#include <functional>

#include "cpu/emit/contraction/plan.hpp"

namespace opfuse::cpu {

/// Scales of a block of rows, and what is subtracted from its codes, by vector.
struct BlockOfRows {
  std::vector<Value*> scales, zeros;
};

class Decoder {
 public:
  /// `block`: number of a block of columns; `vectors`: of them that are used.
  /// `apart`: where codes come from a table, their zero points are left to the caller.
  Decoder(const ContractionPlan& plan, Value* block, int64_t vectors, bool apart = false);

  BlockOfRows block_of_rows(Value* row) const;
  /// The same of codes that are less `middle` already; no zero points where they are a number.
  BlockOfRows less_middle(Value* row, double middle) const;
  std::vector<Value*> words(Value* word) const;
  /// Code `index` of a vector of words, less its zero point.
  Value* centred(Value* words, int64_t index, Value* zero) const;
  /// Codes are less the middle one alone; what BlockOfRows has for zero points is still to be subtracted.
  bool apart() const { return apart_; }

 private:
  Kernel& k_;
  const CodedWeights& coded_;
  const int64_t lanes_, columns_, vectors_;
  const bool by_table_, apart_;
  Value *words_ = nullptr, *scales_ = nullptr, *zeros_ = nullptr, *table_ = nullptr;
  DType scale_type_ = DType::f32;

  int width() const { return static_cast<int>(lanes_); }
  llvm::Type* floats() const { return k_.lanes(k_.b.getFloatTy(), width()); }
  Value* number(double x) const { return llvm::ConstantFP::get(floats(), x); }
  Value* table_of_codes() const;
  Value* at(Value* stream, DType type, Value* row, int64_t vector) const;
  Value* scale(Value* row, int64_t vector) const;
  Value* zero_point(Value* row, int64_t vector) const;
};

/// The code in the middle of those of so many bits.
inline int64_t middle_code(int64_t bits) { return int64_t{1} << (bits - 1); }

/// `block`(scale's row, first word, rows) for every block of rows, then for what the last one has.
void for_blocks(const ContractionPlan& plan, const std::function<void(Value*, Value*, int64_t)>& block);

/// `word`(number, codes) for the words of so many rows.
void for_words(const ContractionPlan& plan, Value* first, int64_t rows,
               const std::function<void(Value*, int64_t)>& word);

}  // namespace opfuse::cpu
