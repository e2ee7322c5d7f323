// A depthwise window, then rows along its channels, in one kernel; a block has all channels of kPixels pixels:
//
//   the window's values -> tile [kPixels][channels] in shared memory: eight channels of kColumns pixels a thread
//     (cuda/depthwise_taps.hpp), or value by value
//   barrier
//   a warp takes a pixel: its row stays in registers, reductions are combined by shuffles, results are stored
//
// so what the window computes never leaves the kernel.
#include <fmt/format.h>

#include "cuda/depthwise_taps.hpp"
#include "cuda/emitters.hpp"
#include "cuda/schedules.hpp"
#include "cuda/vector_body.hpp"
#include "cuda/window_rows_view.hpp"

namespace opfuse::cuda {
namespace {

class WindowRows {
 public:
  explicit WindowRows(Kernel& k)
      : k_(k),
        view_(std::get<WindowRowsView>(view_window_rows(k.region))),
        s_(typed<WindowRowsSchedule>(k.spec.schedule)) {
    for (int axis = 0; axis < window_.domain(); ++axis)
      if (axis != view_.channel) pixel_axes_.push_back(axis);
    if (!s_.eights) return;
    taps_ = view_depthwise(k.region, k.layouts());
    for (int axis : pixel_axes_)
      if (axis != taps_->column) outer_axes_.push_back(axis);
  }

  void emit() {
    k_.block = static_cast<int>(s_.block);
    k_.constant("kBlock", s_.block);
    k_.constant("kPixels", s_.pixels);
    k_.constant("kChannels", view_.channels);
    k_.constant("kPitch", view_.channels + (s_.eights ? 0 : 1));  // a pixel, or a channel, in each bank
    k_.hold(4 * s_.pixels * (view_.channels + (s_.eights ? 0 : 1)), 4 * s_.pixels * (view_.channels + 1));
    k_.use("launch_shared");
    k_.line("float* const tile = reinterpret_cast<float*>(launch_shared());");
    s_.eights ? window_by_eights() : window_by_values();
    k_.line("__syncthreads();");
    rows();
  }

 private:
  Kernel& k_;
  WindowRowsView view_;
  WindowRowsSchedule s_;
  StageText window_{k_, 0}, rows_{k_, 1};
  std::vector<int> pixel_axes_, outer_axes_;  ///< of the window, without channels; without columns too
  std::optional<DepthwiseView> taps_;

  std::string type() const { return k_.wide() ? "(long long)" : "(int)"; }
  Dim column_groups() const { return ceil_div(window_.extent(taps_->column), Dim(s_.columns)); }
  Dim groups() const { return column_groups() * window_.elements(outer_axes_); }

  /// Coordinates of the first pixel of a group of columns.
  void decode_group(const Dim& flat, Env& env) {
    const std::string count = k_.text_of(column_groups());
    const auto wrap = [&](const std::string& t) { return t.find(' ') == std::string::npos ? t : "(" + t + ")"; };
    env[static_cast<size_t>(taps_->column)] = k_.declare_index(
        fmt::format("a{}", taps_->column), fmt::format("{} % {} * kColumns", k_.text_of(flat), wrap(count)));
    const Dim rest = k_.declare_index("rest", fmt::format("{} / {}", k_.text_of(flat), wrap(count)));
    window_.decode(rest, outer_axes_, env);
  }

  void window_by_eights() {
    const int64_t chunks = view_.channels / 8, here = s_.pixels / s_.columns;
    k_.constant("kVector", 8);
    k_.constant("kColumns", s_.columns);
    k_.constant("kGroups", here);  // of columns, in a block
    k_.grid = ceil_div(groups(), Dim(here));
    k_.line(fmt::format("const int chunk = (int)threadIdx.x % {};", chunks));
    k_.line(fmt::format("const int group = (int)threadIdx.x / {};", chunks));
    const Dim flat = k_.declare_index("flat", fmt::format("{}blockIdx.x * kGroups + group", type()));
    k_.open(fmt::format("if (group < kGroups && {} < {})", k_.text_of(flat), k_.text_of(groups())));
    StageText::Point point{Env(static_cast<size_t>(window_.axis_count()), Dim(0))};
    decode_group(flat, point.env);
    point.env[static_cast<size_t>(view_.channel)] = k_.declare_index(fmt::format("a{}", view_.channel), "chunk * 8");
    DepthwiseTaps(window_, *taps_, s_.columns).sum(point);
    const StageOutput& value = window_.stage.outputs[0];
    k_.line("#pragma unroll");
    k_.open("for (int i = 0; i < kColumns; ++i)");
    Dim& column = point.env[static_cast<size_t>(taps_->column)];
    column = k_.declare_index("column", fmt::format("{} + i", k_.text_of(column)));
    const bool ragged = taps_->columns % s_.columns != 0;
    if (ragged) k_.open(fmt::format("if ({} < {})", k_.text_of(column), taps_->columns));
    StageText::Point element = point;
    element.given = load_vectors(window_, point, view_.channel, 8, reads_used(value.value));
    k_.line("#pragma unroll");
    k_.open("for (int j = 0; j < kVector; ++j)");
    Dim& channel = element.env[static_cast<size_t>(view_.channel)];
    channel = channel + Kernel::local("j");
    element.results = {"sum[i][j]"};
    ExprText text = window_.at(element);
    k_.line(fmt::format("tile[(group * kColumns + i) * kPitch + chunk * 8 + j] = {};",
                        text.emit(value.value, value.dtype)));
    k_.close();
    if (ragged) k_.close();
    k_.close();
    k_.close();
  }

  /// Neighbouring threads have neighbouring pixels.
  void window_by_values() {
    const Dim pixels = window_.elements(pixel_axes_);
    k_.grid = ceil_div(pixels, Dim(s_.pixels));
    k_.open("for (int e = (int)threadIdx.x; e < kPixels * kChannels; e += kBlock)");
    k_.line("const int pixel = e % kPixels;");
    StageText::Point point{Env(static_cast<size_t>(window_.axis_count()), Dim(0))};
    const Dim channel = k_.declare_index(fmt::format("a{}", view_.channel), "e / kPixels");
    const Dim flat = k_.declare_index("flat", fmt::format("{}blockIdx.x * kPixels + pixel", type()));
    k_.open(fmt::format("if ({} < {})", k_.text_of(flat), k_.text_of(pixels)));
    window_.decode(flat, pixel_axes_, point.env);
    point.env[static_cast<size_t>(view_.channel)] = channel;
    const Reduction& r = window_.stage.reductions[0];
    k_.line(fmt::format("float sum = {};", identity_text(r)));
    StageText::Point inner = point;
    int loops = 0;
    for (int axis = window_.domain(); axis < window_.axis_count(); ++axis, ++loops) {
      const std::string name = k_.fresh(fmt::format("a{}", axis));
      k_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", name, k_.text_of(window_.extent(axis))));
      inner.env[static_cast<size_t>(axis)] = Kernel::local(name);
    }
    ExprText term = window_.at(inner);
    accumulate(k_, r, "sum", term);
    while (loops-- > 0) k_.close();
    point.results = {"sum"};
    const StageOutput& value = window_.stage.outputs[0];
    ExprText text = window_.at(point);
    k_.line(fmt::format("tile[pixel * kPitch + {}] = {};", k_.text_of(channel), text.emit(value.value, value.dtype)));
    k_.close();
    k_.close();
  }

  /// Where a pixel of the block is in the rows' axes; a warp whose pixel is none goes on with its next.
  Env row_of(const std::string& pixel) {
    Env window(static_cast<size_t>(window_.axis_count()), Dim(0));
    if (s_.eights) {
      const Dim flat = k_.declare_index("flat", fmt::format("{}blockIdx.x * kGroups + {} / kColumns", type(), pixel));
      k_.line(fmt::format("if ({} >= {}) continue;", k_.text_of(flat), k_.text_of(groups())));
      decode_group(flat, window);
      Dim& column = window[static_cast<size_t>(taps_->column)];
      column = k_.declare_index("column", fmt::format("{} + {} % kColumns", k_.text_of(column), pixel));
      if (taps_->columns % s_.columns)
        k_.line(fmt::format("if ({} >= {}) continue;", k_.text_of(column), taps_->columns));
    } else {
      const Dim flat = k_.declare_index("flat", fmt::format("{}blockIdx.x * kPixels + {}", type(), pixel));
      const Dim pixels = window_.elements(pixel_axes_);
      k_.line(fmt::format("if ({} >= {}) continue;", k_.text_of(flat), k_.text_of(pixels)));
      window_.decode(flat, pixel_axes_, window);
    }
    Env env(static_cast<size_t>(rows_.axis_count()), Dim(0));
    for (size_t d = 0; d < view_.row_axes.size(); ++d)
      if (view_.row_axes[d] >= 0 && static_cast<int>(d) != view_.channel)
        env[static_cast<size_t>(view_.row_axes[d])] = window[d];
    return env;
  }

  /// Body for each position c, the first of kStore neighbours, that this lane has of the row.
  template <class Body>
  void over_row(Body body) {
    k_.line("#pragma unroll");
    k_.open("for (int part = 0; part < kPerLane / kStore; ++part)");
    k_.line("const int c = (lane + part * 32) * kStore;");
    const bool ragged = view_.channels % (32 * s_.vector) != 0;
    if (ragged) k_.open("if (c < kChannels)");
    body();
    if (ragged) k_.close();
    k_.close();
  }

  StageText::Point with_kept(StageText::Point point) const {
    for (size_t r = 0; r < rows_.stage.reads.size(); ++r)
      if (rows_.stage.reads[r].stage == 0) point.given[static_cast<int>(r)] = "kept[part * kStore + j]";
    return point;
  }

  void rows() {
    k_.constant("kStore", s_.vector);
    k_.constant("kPerLane", (view_.channels + 32 * s_.vector - 1) / (32 * s_.vector) * s_.vector);
    k_.line("const int lane = (int)threadIdx.x % 32;");
    k_.open("for (int p = (int)threadIdx.x / 32; p < kPixels; p += kBlock / 32)");
    StageText::Point point{row_of("p")};
    k_.line("float kept[kPerLane];");
    over_row([&] {
      k_.line("#pragma unroll");
      k_.line("for (int j = 0; j < kStore; ++j) kept[part * kStore + j] = tile[p * kPitch + c + j];");
    });
    for (const Reduction& r : rows_.stage.reductions) point.results.push_back(reduce(r, point));
    store(point);
    k_.close();
  }

  std::string reduce(const Reduction& r, const StageText::Point& point) {
    const std::string acc = k_.fresh(fmt::format("s{}", point.results.size()));
    const DType dtype = r.value.dtype();
    k_.line(fmt::format("float {} = {};", acc, identity_text(r)));
    over_row([&] {
      k_.line("#pragma unroll");
      k_.open("for (int j = 0; j < kStore; ++j)");
      StageText::Point element = with_kept(point);
      element.env[static_cast<size_t>(view_.reduced)] = Kernel::local("c") + Kernel::local("j");
      ExprText text = rows_.at(element);
      accumulate(k_, r, acc, text);
      k_.close();
    });
    k_.line("#pragma unroll");
    k_.open("for (int step = 16; step > 0; step /= 2)");
    k_.line(fmt::format("const float other = __shfl_xor_sync(0xffffffffu, {}, step);", acc));
    k_.line(fmt::format("{} = {};", acc, combine_text(k_, r.kind, dtype, acc, "other")));
    k_.close();
    return acc;
  }

  void store(const StageText::Point& point) {
    over_row([&] {
      StageText::Point element = with_kept(point);
      element.env[static_cast<size_t>(view_.row_channel)] = Kernel::local("c");
      if (s_.vector == 1) {
        k_.line("constexpr int j = 0;");
        return rows_.store_outputs(element);
      }
      std::set<int> known;
      for (const auto& [read, text] : element.given) known.insert(read);
      emit_vector(
          rows_, element, view_.row_channel, s_.vector, known,
          [&](StageText::Point& at, const std::string&) {
            for (const auto& [read, text] : element.given) at.given[read] = text;
          },
          "kStore");
    });
  }
};

}  // namespace

void emit_window_rows(Kernel& k) { WindowRows(k).emit(); }

}  // namespace opfuse::cuda
