// Sizes that a run finds. A launch of a routine gives symbols values that the inputs did not; the launches behind it
// read them as they read those of inputs. So there are as many levels of memory as such launches, and one: a buffer is
// in that of the last symbol its bytes depend on, whose arena is made once that is known.
//
//   level 0   sizes follow from the inputs: the arena is there before the run
//   level k   ... and from what the first k routines gave: the arena is made when the k-th has found its result
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "program/program.hpp"

namespace opfuse {

class Levels {
 public:
  Levels() = default;
  explicit Levels(const Program& program) {
    for (const Launch& launch : program.launches) add(launch);
  }
  /// The next launch.
  void add(const Launch& launch);
  /// Launches of routines so far.
  int count() const { return count_; }
  int of(const Dim& dim) const;
  int of(const std::vector<Dim>& dims) const;
  /// Of a root's memory.
  int of(const Buffer& root) const { return of(bytes_of(root)); }

 private:
  int count_ = 0;
  std::map<std::string, int> levels_;  ///< by symbol
};

}  // namespace opfuse
