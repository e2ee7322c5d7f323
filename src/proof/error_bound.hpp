// A region in double, with how far each result of a correct kernel may be from it: what opfuse compare holds kernels
// to (docs/accuracy.md).
#pragma once

#include <map>
#include <set>
#include <vector>

#include "proof/lane_tape.hpp"
#include "region/region.hpp"

namespace opfuse {

/// A dense tensor of numbers and errors.
struct BoundedTensor {
  DType dtype = DType::unknown;
  std::vector<int64_t> sizes;
  std::vector<double> value;     ///< of float dtypes
  std::vector<int64_t> integer;  ///< of the others
  std::vector<Reach> error;      ///< empty: all 0
  std::vector<char> tie;         ///< with `error`
  std::vector<char> written;     ///< of results
  bool swallows = false;         ///< of results: see Lanes; of any number behind it

  BoundedTensor() = default;
  BoundedTensor(DType type, std::vector<int64_t> extents);  ///< a result, nothing written
  explicit BoundedTensor(const Tensor& t);                  ///< an operand, without errors
  int64_t elements() const { return static_cast<int64_t>(is_float(dtype) ? value.size() : integer.size()); }
};

/// Convolutions by Winograd: an element's error is `factor` of sum|w||x|, of the largest such sum in its tile.
struct WinogradFactor {
  int stage = 0;
  double factor = 0;
  int row = -1, column = -1;  ///< domain axes of the image
  int64_t tile_h = 1, tile_w = 1;
};

struct BoundOptions {
  ErrorModel model;
  std::vector<WinogradFactor> winograd;
  std::set<size_t> as_given;                       ///< constants of the model, which nothing was folded into
  std::map<size_t, const BoundedTensor*> bounded;  ///< operands with errors of their own, instead of their tensors
};

struct BoundedRun {
  std::vector<BoundedTensor> results;  ///< by parameter; those that are not results are empty
  double worst_of_bound = 1;           ///< the largest (worst case / bound) of any sum
};

/// `params` by parameter: inputs and constants; results are ignored.
BoundedRun bound_errors(const Region& region, const std::vector<Tensor>& params, const SymbolValues& symbols,
                        const BoundOptions& options);

}  // namespace opfuse
