// Attention as its skeleton sees it: three stages
//   scores[b, m, n] = f(sum over d of query(b, m, d) * key(b, n, d))   f: scale, mask, bias, any expression
//   weights         = softmax of scores along n [NaN of rows that are masked everywhere replaced by 0]
//   result[b, m, c] = g(sum over n of weights[b, m, n] * value(b, n, c))
// Operands are expressions over any index maps, so heads cut from a projection need no copy.
#pragma once

#include <string>
#include <variant>

#include "region/region.hpp"

namespace opfuse {

struct AttentionView {
  Expr query, key;       ///< of stage 0
  Expr value;            ///< of stage 2
  int row = 0;           ///< domain axis m of all stages; the axes before it are the batch
  int key_axis = 0;      ///< n in stage 0, where it is the last domain axis
  int depth = 0;         ///< d in stage 0: its reduce axis
  int column = 0;        ///< c in stage 2: its last domain axis
  int summed = 0;        ///< n in stage 2: its reduce axis
  bool guarded = false;  ///< rows without a defined softmax have weights 0
  /// Where the score is more than a mask's number (of stage 0, boolean): elsewhere it is -1e30 or less whatever the
  /// product is. Empty: everywhere.
  Expr needed;

  int64_t head_size(const Region& region) const;  ///< extent of d
  int64_t columns(const Region& region) const;    ///< extent of c
};
std::variant<AttentionView, std::string> view_attention(const Region& region);

/// Stages that look like attention: if they are not generated, the reason is view_attention's.
bool resembles_attention(const Region& region);

}  // namespace opfuse
