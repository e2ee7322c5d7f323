// One stage during emission: where the axes stand, the leaves of its expressions, its loads and stores. Skeletons
// decide which thread has which point; this is what they have in common.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cuda/expr_text.hpp"
#include "cuda/kernel.hpp"
#include "kernel/reads.hpp"

namespace opfuse::cuda {

/// Where each axis of the iteration space stands: a variable of the kernel, or a constant.
using Env = std::vector<Dim>;

class StageText {
 public:
  explicit StageText(Kernel& k, size_t stage = 0);

  Kernel& k;
  const Stage& stage;

  int domain() const { return static_cast<int>(stage.domain.size()); }
  int axis_count() const { return domain() + static_cast<int>(stage.reduce.size()); }
  const Dim& extent(int axis) const { return extents_[static_cast<size_t>(axis)]; }
  Dim elements(const std::vector<int>& axes) const;

  /// Declares the coordinates of `axes` (outermost first) of flat position `flat`.
  void decode(const Dim& flat, const std::vector<int>& axes, Env& env);

  /// Texts that replace reads ("given"), and names of the reductions' results.
  struct Point {
    Env env;
    std::vector<std::string> results = {};
    std::map<int, std::string> given = {};
  };
  ExprText at(const Point& point);
  /// Offset of a read's or an output's element, in elements.
  Dim offset(const Operand& operand, const IndexMap& map, const Point& point);
  std::string inside(const Operand& operand, const IndexMap& map, const Point& point);
  std::string element(int read, const Point& point);  ///< as it lies in memory
  /// `guard`: when the element may be loaded; "" or "true": always.
  std::string load(int read, const Point& point, const std::string& guard = "");
  /// Values of all outputs at the point, then their stores; nothing where the point is outside of clipped ones.
  void store_outputs(const Point& point);

  Operand operand_of(const Read& read) const { return k.operand(read.index); }
  bool guarded(int read) const { return guarded_.count(read) > 0; }

 private:
  std::set<int> guarded_;  ///< reads whose in_bounds appears somewhere
  std::vector<Dim> extents_;
  Dim coordinate(const IndexExpr& index, const Point& point);
  void store_inside(const Point& point);
};

std::string identity_text(const Reduction& reduction);
/// "acc = ..." that combines a value into an accumulator; a sum of products is a fused multiply-add.
void accumulate(Kernel& k, const Reduction& reduction, const std::string& acc, ExprText& point);
std::string combine_text(Kernel& k, ReduceKind kind, DType dtype, const std::string& x, const std::string& y);

}  // namespace opfuse::cuda
