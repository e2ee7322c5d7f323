// Peaks of a graph's intermediates while some values wait for each other in one piece of memory.
#pragma once

#include <unordered_map>
#include <vector>

#include "ir/graph.hpp"

namespace opfuse {

/// Bytes alive at each step. A range of steps changes, and the highest of all is told, in logarithmic time.
class BytesAlive {
 public:
  explicit BytesAlive(size_t steps);
  void add(size_t first, size_t last, int64_t bytes);  ///< both inclusive
  int64_t highest() const { return most_[1]; }
  size_t touched() const { return touched_; }  ///< for tests: pieces of ranges that changed so far

 private:
  size_t leaves_ = 1;
  std::vector<int64_t> most_, own_;  ///< of the subtree; of the whole range of a node, in `most_` too
  size_t touched_ = 0;
  void add(size_t node, size_t begin, size_t end, size_t first, size_t last, int64_t bytes);
};

/// Values of one piece live from the first of them to the last reader of any. Movements need no memory.
class HeldMemory {
 public:
  explicit HeldMemory(const Graph& graph);
  int64_t peak() const { return alive_.highest(); }
  void hold(const Value* value);  ///< in the piece, with those held before
  void release_last();
  void release();                   ///< each lives as long as it did
  void keep() { pieces_.clear(); }  ///< they are one value from now on
  size_t touched() const { return alive_.touched(); }

 private:
  struct Span {
    size_t first = 0, last = 0;
    int64_t bytes = 0;
  };
  struct Held {
    const Value* value;
    Span all;  ///< of the piece up to here
  };
  std::unordered_map<const Value*, Span> spans_;  ///< looked up only
  BytesAlive alive_;
  std::vector<Held> pieces_;
  void add(const Span& span, int64_t sign) { alive_.add(span.first, span.last, sign * span.bytes); }
};

}  // namespace opfuse
