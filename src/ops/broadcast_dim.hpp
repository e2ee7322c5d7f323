// Broadcasting of one dimension.
#pragma once

#include <optional>

#include "tensor/dim.hpp"

namespace opfuse {

/// The common extent of two dimensions, or nothing when they do not fit; open ones are taken to (ops/broadcast.cpp).
std::optional<Dim> broadcast_dim(const Dim& a, const Dim& b);

}  // namespace opfuse
