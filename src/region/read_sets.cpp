#include "region/read_sets.hpp"

#include <algorithm>
#include <iterator>

namespace opfuse {
namespace {

void join(std::vector<int>& set, const std::vector<int>& other) {
  if (other.empty() || std::includes(set.begin(), set.end(), other.begin(), other.end())) return;
  std::vector<int> both;
  std::set_union(set.begin(), set.end(), other.begin(), other.end(), std::back_inserter(both));
  set = std::move(both);
}

}  // namespace

const ReadSets::Sets& ReadSets::of(const Expr& e) {
  if (const auto it = known_.find(e.node()); it != known_.end()) return it->second.sets;
  Sets sets;
  if (e.op() == ExprOp::read) sets.read = {e.index()};
  if (e.op() == ExprOp::in_bounds) sets.asked = {e.index()};
  for (const Expr& arg : e.args()) {
    const Sets& own = of(arg);
    join(sets.read, own.read), join(sets.asked, own.asked);
  }
  return known_.emplace(e.node(), Known{e, std::move(sets)}).first->second.sets;
}

}  // namespace opfuse
