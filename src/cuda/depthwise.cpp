// Depthwise convolution, f16 or bf16, channels last: neighbouring threads have neighbouring channels, eight each, of
// kColumns neighbouring results (cuda/depthwise_taps.hpp). The epilogue stores 16 bytes for each column.
#include <fmt/format.h>

#include "cuda/depthwise_taps.hpp"
#include "cuda/emitters.hpp"
#include "cuda/schedules.hpp"
#include "cuda/vector_body.hpp"

namespace opfuse::cuda {
namespace {

constexpr int64_t kVector = 8;

class Depthwise {
 public:
  explicit Depthwise(Kernel& k)
      : k_(k),
        s_(k),
        view_(*view_depthwise(k.region, k.layouts())),
        schedule_(typed<DepthwiseSchedule>(k.spec.schedule)) {}

  void emit() {
    k_.block = static_cast<int>(schedule_.block);
    k_.constant("kBlock", k_.block);
    k_.constant("kVector", kVector);
    k_.constant("kColumns", schedule_.columns);
    StageText::Point point{Env(static_cast<size_t>(s_.axis_count()), Dim(0))};
    place(point.env);
    DepthwiseTaps(s_, view_, schedule_.columns).sum(point);
    epilogue(point);
  }

 private:
  Kernel& k_;
  StageText s_;
  DepthwiseView view_;
  DepthwiseSchedule schedule_;

  /// Neighbouring threads have neighbouring channels, then neighbouring groups of columns.
  void place(Env& env) {
    const Dim channels = floor_div(s_.extent(view_.channel), Dim(kVector));
    const Dim groups = ceil_div(s_.extent(view_.column), Dim(schedule_.columns));
    std::vector<int> outer;
    for (int axis = 0; axis < s_.domain(); ++axis)
      if (axis != view_.channel && axis != view_.column) outer.push_back(axis);
    const Dim threads = channels * groups * s_.elements(outer);
    k_.grid = ceil_div(threads, Dim(k_.block));
    const std::string type = k_.wide() ? "(long long)" : "(int)";
    Dim rest = k_.declare_index("thread", fmt::format("{0}blockIdx.x * kBlock + {0}threadIdx.x", type));
    k_.line(fmt::format("if ({} >= {}) return;", k_.text_of(rest), k_.text_of(threads)));
    const auto cut = [&](int axis, const Dim& count, const char* size) {
      env[static_cast<size_t>(axis)] = k_.declare_index(
          fmt::format("a{}", axis), fmt::format("{} % {} * {}", k_.text_of(rest), k_.text_of(count), size));
      rest = k_.declare_index("rest", fmt::format("{} / {}", k_.text_of(rest), k_.text_of(count)));
    };
    cut(view_.channel, channels, "kVector");
    cut(view_.column, groups, "kColumns");
    s_.decode(rest, outer, env);
  }

  void epilogue(StageText::Point point) {
    const bool ragged = view_.columns % schedule_.columns != 0;
    Dim& column = point.env[static_cast<size_t>(view_.column)];
    k_.line("#pragma unroll");
    k_.open("for (int i = 0; i < kColumns; ++i)");
    column = k_.declare_index("column", fmt::format("{} + i", k_.text_of(column)));
    if (ragged) k_.open(fmt::format("if ({} < {})", k_.text_of(column), view_.columns));
    emit_vector(s_, point, view_.channel, kVector, {},
                [](StageText::Point& element, const std::string& j) { element.results = {"sum[i][" + j + "]"}; });
    if (ragged) k_.close();
    k_.close();
  }
};

}  // namespace

void emit_depthwise(Kernel& k) { Depthwise(k).emit(); }

}  // namespace opfuse::cuda
