// What a region multiplies in its sums: the unit of the machine that does it gives the roof of its launch.
#pragma once

#include "region/region.hpp"

namespace opfuse {

/// "int8": codes are summed in i32; "bf16", "f16": factors of that type; "f32": all else. Of several sums, that with
/// the most products.
const char* product_type(const Region& region);

}  // namespace opfuse
