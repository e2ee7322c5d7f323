// The chain is walked from its end as long as what is there may be absent:
//     op("conv") >> maybe(op("batch_norm")) >> maybe(op("relu"))      relu, batch_norm or conv
#include "match/anchor_ops.hpp"

namespace opfuse {
namespace {

struct Ends {
  std::set<std::string, std::less<>> ops;
  bool any = false;       ///< a value of any producer
  bool nullable = false;  ///< nothing at all

  void add(const Ends& other) {
    ops.insert(other.ops.begin(), other.ops.end());
    any |= other.any;
  }
};

Ends ends_of(const Pattern& pattern);

/// Adds what an element can end in; false when something before it can be the end as well.
bool ends_here(const Element& e, Ends& ends) {
  switch (e.kind) {
    case ElementKind::op:
      ends.ops.insert(e.ops.begin(), e.ops.end());
      return true;
    case ElementKind::maybe:
      ends.add(ends_of(e.parts.front()));
      return false;
    case ElementKind::repeat: {
      const Ends part = ends_of(e.parts.front());
      ends.add(part);
      return e.lo > 0 && !part.nullable;
    }
    case ElementKind::one_of: {
      bool nullable = false;
      for (const Pattern& p : e.parts) {
        const Ends part = ends_of(p);
        ends.add(part);
        nullable |= part.nullable;
      }
      return !nullable;
    }
    case ElementKind::pass_through:
      return false;
    case ElementKind::any:
    case ElementKind::tensor:
    case ElementKind::constant:
    case ElementKind::fork:
      ends.any = true;
      return true;
  }
  return true;
}

Ends ends_of(const Pattern& pattern) {
  Ends ends;
  const auto& chain = pattern.chain();
  for (auto it = chain.rbegin(); it != chain.rend(); ++it)
    if (ends_here(**it, ends)) return ends;
  ends.nullable = true;
  return ends;
}

}  // namespace

AnchorOps anchor_ops(const Pattern& pattern) {
  Ends ends = ends_of(pattern);
  if (ends.any || ends.nullable) return std::nullopt;
  return std::move(ends.ops);
}

}  // namespace opfuse
