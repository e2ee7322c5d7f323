// A sample without a name is called by its number.
#include "quantize/samples.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/fail.hpp"
#include "ir/value_name.hpp"
#include "tensor/finite.hpp"

namespace opfuse::quantization {

std::string Samples::name_of(size_t index) const { return name ? name(index) : fmt::format("sample {}", index); }

size_t Samples::number_of(size_t index) const { return original ? original(index) : index; }

Samples some_of(const Samples& samples, size_t most) {
  const size_t count = samples.count;
  const auto at = [count, most](size_t index) { return count > most ? index * count / most : index; };
  return {.read = [samples, most, at](size_t index) -> std::optional<std::vector<Tensor>> {
            return index < most ? samples.read(at(index)) : std::nullopt;
          },
          .name = [samples, at](size_t index) { return samples.name_of(at(index)); },
          .count = count == 0 ? most : std::min(count, most),
          .original = [samples, at](size_t index) { return samples.number_of(at(index)); }};
}

void require_finite(const Graph& graph, const Samples& samples, size_t index, const std::vector<Tensor>& sample) {
  for (size_t i = 0; i < sample.size(); ++i) {
    if (all_finite(sample[i])) continue;
    throw fail(E::bad_binding, "{} has NaN or infinite numbers in '{}'", samples.name_of(index),
               value_name(*graph.inputs()[i]))
        .hint("repair or remove it; nothing was written");
  }
}

}  // namespace opfuse::quantization
