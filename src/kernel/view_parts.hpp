// What views of contractions and of windows are recognised by.
#pragma once

#include "kernel/views.hpp"
#include "region/index_map.hpp"
#include "region/read_shape.hpp"

namespace opfuse {

bool plain(const IndexTerm& t);
bool mentions(const Expr& e, ExprOp op);
/// Every sliding dimension of a data map: domain axes other than `vec`, and taps (reduce axes other than
/// `channel`). Empty optional: a term that is none of these.
std::optional<std::vector<SlidingDim>> sliding_dims(const Stage& stage, const IndexMap& map, const Shape& shape,
                                                    int vec, int channel, int channel_dim);
/// An axis in two dimensions would need two windows at once.
bool each_axis_once(const std::vector<SlidingDim>& sliding);
DType dtype_of(const Region& region, const Read& read);
/// Channels are read without a guard, whatever the guard of the other dimensions says.
bool stays_inside(const Region& region, const Stage& stage, int read, size_t dim);
bool is_constant(const Region& region, const Read& read);

}  // namespace opfuse
