// What one launch must save at least to be taken: predictions of smaller gains are guesses. A target's file may say
// others ([margins]).
#pragma once

namespace opfuse {

struct FusionMargins {
  double fusion = 0.02;    ///< of the time apart
  double prologue = 0.25;  ///< where a contraction computes its data: tiles are chosen for products
};

}  // namespace opfuse
