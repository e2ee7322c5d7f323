// Depthwise convolution, f16 or bf16, channels last. A thread has eight channels of kColumns neighbouring results:
//
//   for each row of taps inside the image:
//     the row's kTaps weights -> registers
//     for each of kSpan columns of the data: 16 bytes -> 8 floats, added to every result whose window they are in
//   epilogue: 16 bytes for each column
//
// so a column of the data is loaded once for all the taps that slide over it, a weight once for all columns.
#include <fmt/format.h>

#include "cuda/depthwise_view.hpp"
#include "cuda/emitters.hpp"
#include "cuda/schedules.hpp"
#include "cuda/vector_body.hpp"
#include "kernel/reads.hpp"

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
    k_.constant("kTaps", view_.taps);
    k_.constant("kStride", view_.stride);
    k_.constant("kDilation", view_.dilation);
    k_.constant("kSpan", view_.span(schedule_.columns));
    StageText::Point point{Env(static_cast<size_t>(s_.axis_count()), Dim(0))};
    place(point.env);
    k_.line("float sum[kColumns][kVector] = {};");
    const std::string row = fmt::format("a{}", view_.row_tap);
    k_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", row, k_.text_of(s_.extent(view_.row_tap))));
    StageText::Point inner = point;
    inner.env[static_cast<size_t>(view_.row_tap)] = Kernel::local(row);
    if (const std::string guard = rows_inside(inner.env); !guard.empty()) k_.line("if (!(" + guard + ")) continue;");
    load_weights(inner);
    slide(inner);
    k_.close();
    epilogue(point);
  }

 private:
  Kernel& k_;
  StageText s_;
  DepthwiseView view_;
  DepthwiseSchedule schedule_;

  const Read& data() const { return s_.stage.reads[static_cast<size_t>(view_.data)]; }
  const Read& weights() const { return s_.stage.reads[static_cast<size_t>(view_.weights)]; }

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

  Dim coordinate(const IndexMap& map, size_t d, const Env& env) const {
    Dim at = map.dims[d].offset;
    for (const IndexTerm& t : map.dims[d].terms) at = at + env[static_cast<size_t>(t.axis)] * t.coef;
    return at;
  }

  /// What may leave the image beside the column.
  std::string rows_inside(const Env& env) {
    std::string all;
    const Operand operand = s_.operand_of(data());
    for (size_t d = 0; d < data().map.dims.size(); ++d) {
      if (d == view_.column_dim || always_inside(data().map.dims[d], operand.shape[d], axis_extents(s_.stage)))
        continue;
      const std::string at = k_.text_of(coordinate(data().map, d, env));
      all += fmt::format("{}{} >= 0 && {} < {}", all.empty() ? "" : " && ", at, at, k_.text_of(operand.shape[d]));
    }
    return all;
  }

  /// Eight neighbouring elements of `read` as floats `to`, which is declared.
  void load_eight(const Read& read, const IndexMap& map, const StageText::Point& point, const std::string& to) {
    const Operand operand = s_.operand_of(read);
    k_.line(fmt::format("alignas(16) {} bits[kVector];", memory_type(operand.dtype)));
    k_.line(copy_text(operand.dtype, kVector, "bits",
                      fmt::format("{} + {}", operand.name, k_.text_of(s_.offset(operand, map, point)))));
    k_.line("#pragma unroll");
    k_.line(
        fmt::format("for (int j = 0; j < kVector; ++j) {}[j] = {};", to, from_memory(k_, operand.dtype, "bits[j]")));
  }

  void load_weights(StageText::Point point) {
    k_.line("float weight[kTaps][kVector];");
    k_.line("#pragma unroll");
    k_.open("for (int tap = 0; tap < kTaps; ++tap)");
    point.env[static_cast<size_t>(view_.column_tap)] = Kernel::local("tap");
    load_eight(weights(), weights().map, point, "weight[tap]");
    k_.close();
  }

  void slide(StageText::Point point) {
    IndexMap map = data().map;  // by columns instead of taps
    for (IndexTerm& t : map.dims[view_.column_dim].terms)
      if (t.axis == view_.column_tap) t.coef = 1;
    point.env[static_cast<size_t>(view_.column_tap)] = Kernel::local("x");
    k_.line("#pragma unroll");
    k_.open("for (int x = 0; x < kSpan; ++x)");
    k_.line("float value[kVector] = {};");
    const Dim at = k_.declare_index("at", k_.text_of(coordinate(map, view_.column_dim, point.env)));
    const std::string name = k_.text_of(at);
    k_.open(fmt::format("if ({0} >= 0 && {0} < {1})", name, k_.text_of(s_.operand_of(data()).shape[view_.column_dim])));
    load_eight(data(), map, point, "value");
    k_.close();
    k_.line("#pragma unroll");
    k_.open("for (int tap = 0; tap < kTaps; ++tap)");
    k_.line("const int behind = x - tap * kDilation;");
    k_.line("if (behind < 0 || behind % kStride != 0 || behind / kStride >= kColumns) continue;");
    k_.line("#pragma unroll");
    k_.open("for (int j = 0; j < kVector; ++j)");
    k_.line("float& s = sum[behind / kStride][j];");
    k_.line("s = fmaf(value[j], weight[tap][j], s);");
    k_.close();
    k_.close();
    k_.close();
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
