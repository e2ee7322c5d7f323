// Places, scores and factors as text. A row whose scores are all minus infinity has the sum 0: what becomes of it is
// the view's EmptyRows.
#include "cuda/attention_frame.hpp"

#include <fmt/format.h>

#include <variant>

namespace opfuse::cuda {

AttentionFrame::AttentionFrame(Kernel& kernel)
    : k(kernel),
      view(std::get<AttentionView>(view_attention(kernel.region))),
      scores(kernel, 0),
      context(kernel, 2),
      queries(scores.extent(view.row)),
      keys(scores.extent(view.key_axis)),
      depth(view.head_size(kernel.region)),
      columns(view.columns(kernel.region)),
      batch(static_cast<size_t>(view.row), Dim(0)) {}

/// Neighbouring blocks share keys and values.
void AttentionFrame::place(int64_t rows) {
  const Dim tiles = ceil_div(queries, Dim(rows));
  std::vector<int> axes;
  for (int axis = 0; axis < view.row; ++axis) axes.push_back(axis);
  k.grid = tiles * scores.elements(axes);
  const std::string type = k.index_type();
  const Dim tile = k.declare_index("tile", fmt::format("({})blockIdx.x", type));
  Dim rest = tile;
  if (tiles == Dim(1)) {
    k.line(fmt::format("const {} m0 = 0;", type));
  } else {
    const std::string count = tiles.is_constant() ? k.text_of(tiles) : "(" + k.text_of(tiles) + ")";
    k.line(fmt::format("const {} m0 = {} % {} * kRows;", type, k.text_of(tile), count));
    rest = k.declare_index("rest", fmt::format("{} / {}", k.text_of(tile), count));
  }
  scores.decode(rest, axes, batch);
}

StageText::Point AttentionFrame::score_at(const Dim& row, const Dim& key, const Dim& at) const {
  Env env = batch;
  env.insert(env.end(), {row, key, at});
  return {env};
}

StageText::Point AttentionFrame::result_at(const Dim& row, const Dim& column, const Dim& key) const {
  Env env = batch;
  env.insert(env.end(), {row, column, key});
  return {env};
}

std::string AttentionFrame::within(const Dim& at, const Dim& size, int64_t step) const {
  if (size.is_constant() && size.value() % step == 0) return "";
  return fmt::format("{} < {}", k.text_of(at), k.text_of(size));
}

std::string AttentionFrame::guard_of_score(const Dim& row, const Dim& key, int64_t rows, int64_t keys_of_step) const {
  std::string guard = within(key, keys, keys_of_step);
  if (!reads_used(scores.stage.outputs[0].value).empty())
    if (const std::string row_guard = within(row, queries, rows); !row_guard.empty())
      guard += (guard.empty() ? "" : " && ") + row_guard;
  return guard;
}

void AttentionFrame::declare_score(const std::string& name, const Dim& row, const Dim& key, const std::string& product,
                                   int64_t rows, int64_t keys_of_step) {
  const StageOutput& score = scores.stage.outputs[0];
  const std::string guard = guard_of_score(row, key, rows, keys_of_step);
  k.line(fmt::format("float {} = {};", name, guard.empty() ? "0.0f" : "-__int_as_float(0x7f800000)"));
  if (!guard.empty()) k.open("if (" + guard + ")");
  StageText::Point point = score_at(row, key, 0);
  point.results = {product};
  ExprText text = scores.at(point);
  k.line(fmt::format("{} = {};", name, text.emit(score.value, score.dtype)));
  if (!guard.empty()) k.close();
}

std::string AttentionFrame::factor(const std::string& highest, const std::string& total) const {
  const std::string some = keys.is_constant() ? "" : fmt::format("{} == 0 ? 0.0f : ", k.text_of(keys));
  switch (view.empty) {
    case EmptyRows::undefined:
      return fmt::format("{}1.0f / {}", some, total);
    case EmptyRows::zero:
      return fmt::format("{} == -__int_as_float(0x7f800000) ? 0.0f : 1.0f / {}", highest, total);
    case EmptyRows::no_nan:
      return fmt::format("{0} > 0.0f ? 1.0f / {0} : 0.0f", total);
  }
  return {};
}

std::string AttentionFrame::result(const std::string& sum, const std::string& factor) const {
  if (view.empty == EmptyRows::no_nan) return fmt::format("({1} > 0.0f ? {0} * {1} : 0.0f)", sum, factor);
  return fmt::format("({} * {})", sum, factor);
}

}  // namespace opfuse::cuda
