// Attention as its skeleton sees it: three stages
//   scores[b, m, n] = f(sum over d of query(b, m, d) * key(b, n, d))   f: scale, mask, bias, any expression
//   weights         = h(softmax of scores along n [0 in rows that are masked everywhere])   h: a rounding to codes, any
//                     expression of the weight and of numbers that are the same everywhere
//   result[b, m, c] = g(sum over n of weights[b, m, n] * value(b, n, c))
// Operands are expressions over any index maps, so heads cut from a projection need no copy.
#pragma once

#include <string>
#include <variant>

#include "region/region.hpp"

namespace opfuse {

/// What rows become whose softmax is 0 / 0.
enum class EmptyRows {
  undefined,  ///< NaN
  zero,       ///< 0, as ONNX's Attention has it: rows whose scores are all -inf
  no_nan,     ///< 0, and so do rows with NaN in them
};

struct AttentionView {
  Expr query, key;   ///< of stage 0
  Expr value;        ///< of stage 2
  int row = 0;       ///< domain axis m of all stages; the axes before it are the batch
  int key_axis = 0;  ///< n in stage 0, where it is the last domain axis
  int depth = 0;     ///< d in stage 0: its reduce axis
  int column = 0;    ///< c in stage 2: its last domain axis
  int summed = 0;    ///< n in stage 2: its reduce axis
  EmptyRows empty = EmptyRows::undefined;
  Expr weight;  ///< h, of the weight as result 0; empty: the weight itself
  /// Where the score is more than a mask's number, or NaN by its mask (of stage 0, boolean): elsewhere it is -1e30 or
  /// less whatever the product is. Empty: everywhere.
  Expr needed;

  int64_t head_size(const Region& region) const;  ///< extent of d
  int64_t columns(const Region& region) const;    ///< extent of c
};
std::variant<AttentionView, std::string> view_attention(const Region& region);

/// Stages that look like attention: if they are not generated, the reason is view_attention's.
bool resembles_attention(const Region& region);

}  // namespace opfuse
