// The region form: what a group is for a code generator. A short DAG of stages; each stage is one loop
// nest over a *domain* (its parallel axes) and *reduce* axes, with reads through index maps, a list of
// reductions, and outputs. All anchors share this one form; the anchor only says which skeleton emits
// it, so one interpreter and one printer serve all of them.
//
//   for d in domain:                                      every output element, independent
//     for k, reduction in reductions:                     later ones may use result(0..k-1)
//       acc_k = identity;  for r in reduce: acc_k = combine(acc_k, reduction.value(d, r))
//     for output in outputs: store(output, map(d)) = output.value(d, result(...))
//
// Domain axes that no reduction mentions (through its reads or coord) share one run of the reductions: a
// softmax row has domain [rows, n] and reduce [n], its reductions read [row, k], its output reads [row, i].
//
// map: no reductions. row: reductions over the same axes of a row. contraction: one sum whose value is
// A * B (prologues inside A and B), or several with one A (a gated MLP: act(x A) * (x B)). window: one sum or max over
// a sliding window. scatter: no reductions; the points are taken in order (the last axis fastest), each stores where a
// computed index says, into what the result holds already, and one outside the result stores nothing. Reads that leave
// their tensor are never performed: expressions guard them with select(in_bounds(k), x, fill), which also expresses
// padding, Pad and Concat. Without such a guard a read must always be in bounds.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "expr/expr.hpp"
#include "tensor/tensor.hpp"

namespace opfuse {

/// coef * ((axis / div) % mod); mod 0 means no modulo. `axis` counts domain axes first, then reduce axes.
struct IndexTerm {
  Dim coef = 1;
  int axis = 0;
  Dim div = 1;
  Dim mod = 0;
  bool operator==(const IndexTerm&) const = default;
};

/// Coordinate along one tensor dimension: a sum of terms plus an offset, or (map and scatter stages only) any
/// integer expression over coords and other reads, in bounds by its own construction (clamped).
struct IndexExpr {
  std::vector<IndexTerm> terms;
  Dim offset = 0;
  Expr dynamic;  ///< used instead of terms/offset when not empty
  bool operator==(const IndexExpr&) const = default;
};

/// Logical coordinates of the iteration space -> logical coordinates of a tensor. Knows no layout.
struct IndexMap {
  std::vector<IndexExpr> dims;
  bool operator==(const IndexMap&) const = default;
  static IndexMap identity(size_t rank);
  /// Numpy-style: aligns the trailing dimensions of an operand of `shape` with `domain`; extent-1
  /// dimensions are constant 0.
  static IndexMap broadcast(const Shape& shape, const Shape& domain);
};

enum class Anchor { map, row, contraction, window, attention, scatter };
enum class ReduceKind { sum, product, max, min };

/// A read of a region parameter (stage < 0) or of output `index` of an earlier stage, whose value then
/// lives in a tile-local buffer and never reaches memory.
struct Read {
  int stage = -1;
  int index = 0;
  IndexMap map;
  bool operator==(const Read&) const = default;
};

struct Reduction {
  ReduceKind kind = ReduceKind::sum;
  Expr value;
  bool operator==(const Reduction&) const = default;
};

/// One result of a stage: stored to region parameter `param` (>= 0) at map(domain), or kept tile-local
/// for later stages (param -1; then the map is the identity).
struct StageOutput {
  int param = -1;
  Expr value;
  IndexMap map;
  Shape shape;  ///< of the result; for param -1 equals the domain
  DType dtype = DType::f32;
  std::optional<ReduceKind> combine{};  ///< scatter: with what the element holds; none: takes its place
  bool clipped = false;  ///< points outside the result store nothing, and read nothing for what they would have stored
  bool operator==(const StageOutput&) const = default;
};

/// Whether coordinates may be expressions over other reads.
inline bool computes_indices(Anchor anchor) { return anchor == Anchor::map || anchor == Anchor::scatter; }

struct Stage {
  Anchor anchor = Anchor::map;
  std::vector<Dim> domain;
  std::vector<Dim> reduce;
  std::vector<Read> reads;
  std::vector<Reduction> reductions;
  std::vector<StageOutput> outputs;
  bool operator==(const Stage&) const = default;
};

enum class ParamRole { input, constant, output };

struct Param {
  ParamRole role = ParamRole::input;
  TensorType type;
  bool operator==(const Param&) const = default;
};

/// A region. Parameters are operands: constants too (their bytes are not part of the hash), so equal
/// regions share one kernel.
struct Region {
  std::vector<Param> params;
  std::vector<Stage> stages;
  bool operator==(const Region&) const = default;

  std::set<std::string> symbols() const;
  Hash128 hash() const;  ///< of the text
};

std::string print(const Region& region);
Region parse_region(std::string_view text);
void verify(const Region& region);  ///< E::internal with every problem found

/// FLOP on useful taps (none that fall into padding) and bytes of the parameters, with symbols bound.
struct RegionCost {
  double flops = 0;
  double bytes_read = 0;
  double bytes_written = 0;
};
RegionCost cost_of(const Region& region, const SymbolValues& symbols = {});

/// Runs a region on concrete dense tensors, in doubles (or typed). Inputs and constants by parameter index; a
/// tensor given for an output is what it held before (regions may store a part of it). Returns the outputs.
std::vector<Tensor> interpret(const Region& region, const std::vector<Tensor>& params, const SymbolValues& symbols,
                              Precision precision);

}  // namespace opfuse
