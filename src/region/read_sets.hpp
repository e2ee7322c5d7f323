// Which reads of a stage an expression has. Walking it at every concatenation of a chain of them would be of the fourth
// power of the chain's length, so what was found is kept for the parts that later expressions share.
#pragma once

#include <unordered_map>
#include <vector>

#include "expr/expr.hpp"

namespace opfuse {

class ReadSets {
 public:
  /// Numbers of reads, in order.
  struct Sets {
    std::vector<int> read, asked;  ///< asked: whether their coordinates are inside
  };

  const Sets& of(const Expr& e);
  /// Reads of another stage follow.
  void clear() { known_.clear(); }

 private:
  struct Known {
    Expr kept;  ///< nodes are told apart by address
    Sets sets;
  };
  std::unordered_map<const ExprNode*, Known> known_;
};

}  // namespace opfuse
