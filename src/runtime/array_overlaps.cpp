#include "runtime/array_overlaps.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/fail.hpp"

namespace opfuse {
namespace {

struct Span {
  int device;
  uintptr_t begin, end;
  bool output;
  const std::string* name;
};

void add(std::vector<Span>& spans, const ArtifactTensor& tensor, const ArrayView& array, bool output) {
  uintptr_t bytes = array.data ? byte_size(tensor.type.dtype) : 0;
  for (const int64_t size : array.shape) bytes *= static_cast<uintptr_t>(size);  // resolve_outputs checked the product
  const auto begin = reinterpret_cast<uintptr_t>(array.data);
  if (bytes > 0) spans.push_back({array.device, begin, begin + bytes, output, &tensor.name});
}

[[noreturn]] void refuse(const Span& output, const Span& other) {
  throw fail(E::bad_binding, "the arrays bound to output '{}' and {} '{}' share memory", *output.name,
             other.output ? "output" : "input", *other.name)
      .hint("kernels write results while operands are still read: bind an array of its own, or none");
}

}  // namespace

void check_overlaps(const Artifact& a, const std::vector<ArrayView>& inputs, const std::vector<ArrayView>& outputs) {
  std::vector<Span> spans;
  for (size_t i = 0; i < outputs.size(); ++i) add(spans, a.outputs[i], outputs[i], true);
  if (spans.empty()) return;
  for (size_t i = 0; i < inputs.size(); ++i) add(spans, a.inputs[i], inputs[i], false);
  const auto place = [](const Span& s) { return std::pair(s.device, s.begin); };
  std::ranges::sort(spans, std::less<>(), place);
  const Span *output = nullptr, *any = nullptr;  // of those so far, what reaches furthest
  for (const Span& span : spans) {
    const auto meets = [&](const Span* other) {
      return other && other->device == span.device && span.begin < other->end;
    };
    if (meets(output)) refuse(*output, span);
    if (span.output && meets(any)) refuse(span, *any);
    const auto further = [&](const Span* other) {
      return !other || other->device != span.device || other->end < span.end;
    };
    if (further(any)) any = &span;
    if (span.output && further(output)) output = &span;
  }
}

}  // namespace opfuse
