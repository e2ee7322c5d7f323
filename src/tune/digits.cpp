#include "tune/digits.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "cpu/contraction/digits.hpp"

namespace opfuse {

void forbid_digits(Program& program) {
  for (Launch& launch : program.launches)
    std::erase_if(launch.schedule.knobs, [](const auto& knob) { return knob.first == kDigits; });
}

void note_digits(Program& program) {
  const auto products = std::count_if(program.launches.begin(), program.launches.end(),
                                      [](const Launch& launch) { return launch.schedule.get(kDigits, 0) != 0; });
  if (products)
    program.notes.push_back(
        fmt::format("rows of data as whole numbers of 24 bits in {} product{} with codes: each within 2^-23 of the "
                    "largest of its {} neighbours at most; --exact: as floats",
                    products, products == 1 ? "" : "s", kLongestChunk));
}

}  // namespace opfuse
