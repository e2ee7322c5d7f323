// A thread takes the updates of its own elements, in order, so that the last one wins and sums are the same in every
// run: the elements of one line (axes that are coordinates of the result as they are), or, where there is no such axis,
// a range of the first computed dimension; then every thread looks at all updates.
#include <fmt/format.h>

#include "cuda/emitters.hpp"
#include "kernel/scatter_view.hpp"

namespace opfuse::cuda {
namespace {

constexpr int kBlock = 128;
constexpr int64_t kScans = 1024;  // threads that look at all updates

class Scatter {
 public:
  explicit Scatter(Kernel& k) : k_(k), s_(k), view_(view_scatter(s_.stage)) {}

  void emit() {
    k_.block = kBlock;
    k_.constant("kBlock", kBlock);
    const bool scans = view_.lines.empty();
    const Dim threads = scans ? Dim(view_.dynamic.empty() ? 1 : kScans) : s_.elements(view_.lines);
    k_.grid = ceil_div(threads, Dim(kBlock));
    const std::string type = k_.wide() ? "(long long)" : "(int)";
    const Dim at = k_.declare_index("line", fmt::format("{}blockIdx.x * kBlock + {}threadIdx.x", type, type));
    k_.line(fmt::format("if ({} >= {}) return;", k_.text_of(at), k_.text_of(threads)));
    StageText::Point point{Env(static_cast<size_t>(s_.axis_count()), Dim(0)), {}, {}};
    s_.decode(at, view_.lines, point.env);
    ordered(0, point, scans && !view_.dynamic.empty() ? k_.text_of(at) : "");
  }

 private:
  Kernel& k_;
  StageText s_;
  ScatterView view_;

  void ordered(size_t index, StageText::Point& point, const std::string& scan) {
    if (index == view_.ordered.size()) return update(point, scan);
    const int axis = view_.ordered[index];
    const std::string name = k_.fresh(fmt::format("a{}", axis));
    k_.open(
        fmt::format("for ({} {} = 0; {} < {}; ++{})", k_.index_type(), name, name, k_.text_of(s_.extent(axis)), name));
    point.env[static_cast<size_t>(axis)] = Kernel::local(name);
    ordered(index + 1, point, scan);
    k_.close();
  }

  void update(const StageText::Point& point, const std::string& scan) {
    const StageOutput& output = s_.stage.outputs[0];
    const Operand result = k_.operand(output.param);
    std::string taken = s_.inside(result, output.map, point);
    if (!scan.empty()) {
      const auto dim = static_cast<size_t>(view_.dynamic[0]);
      const std::string at = s_.at(point).emit(output.map.dims[dim].dynamic, DType::i64);
      taken += fmt::format(" && (long long){} * {} / {} == {}", at, kScans, k_.text_of(result.shape[dim]), scan);
    }
    k_.open(fmt::format("if ({})", taken));
    const std::string to = fmt::format("{}[{}]", result.name, k_.text_of(s_.offset(result, output.map, point)));
    std::string value = s_.at(point).emit(output.value, output.dtype);
    if (output.combine)
      value = combine_text(k_, *output.combine, output.dtype, from_memory(k_, output.dtype, to), value);
    k_.line(fmt::format("{} = {};", to, to_memory(k_, output.dtype, "(" + value + ")")));
    k_.close();
  }
};

}  // namespace

void emit_scatter(Kernel& k) { Scatter(k).emit(); }

}  // namespace opfuse::cuda
