// Whether a convolution of a dense input is faster by Winograd on a copy of it in blocks of channels.
#pragma once

#include <cstdint>
#include <vector>

#include "region/region.hpp"
#include "target/target.hpp"
#include "tensor/layout.hpp"

namespace opfuse {

/// `data` is the parameter that would be copied into the layout that `layouts` have there.
bool copy_of_input_pays(const Region& region, size_t data, const std::vector<Layout>& layouts, const TargetInfo& target,
                        int64_t threads);

}  // namespace opfuse
