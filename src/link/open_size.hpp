// Kernels of launches that differ by one size alone share their code: the size becomes an argument.
#pragma once

#include <optional>

#include "kernel/spec.hpp"

namespace opfuse {

/// A spec whose kernel reads one size, and what the size is in the launch it was made of.
struct OpenSize {
  KernelSpec spec;
  int64_t size = 0;
};

/// Of a map whose results lie in blocks of channels, channels outermost: how many blocks. Nothing where that size would
/// cost more than the trips of one loop.
std::optional<OpenSize> open_size(const KernelSpec& spec);

/// Nobody goes along an extent of 1: its strides become those of dense memory, so that views of larger buffers ask for
/// the kernels of dense ones.
void settle_unit_strides(KernelSpec& spec);

}  // namespace opfuse
