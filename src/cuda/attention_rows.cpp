#include "cuda/attention_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cuda/vector_body.hpp"

namespace opfuse::cuda {

void declare_rows(Kernel& k) {
  k.line("float highest[2] = {-__int_as_float(0x7f800000), -__int_as_float(0x7f800000)};  // of lane / 4, + 8");
  k.line("float total[2] = {};  // of this lane's keys");
}

namespace {

/// Body for each score of the lane; the coordinates that it uses are declared.
template <class Body>
void each_score(AttentionFrame& frame, const FragmentTexts& texts, Body body) {
  Kernel& k = frame.k;
  k.line("#pragma unroll");
  k.open("for (int j = 0; j < kKeys / 8; ++j)");
  k.line("#pragma unroll");
  k.open("for (int e = 0; e < 4; ++e)");
  const Dim row = k.declare_index("m", fmt::format("m0 + {} + lane / 4 + e / 2 * 8", texts.first));
  const Dim key = k.declare_index("n", "t * kKeys + j * 8 + lane % 4 * 2 + e % 2");
  body(row, key, texts.score("j", "e"));
  k.close();
  k.close();
}

/// Whether the operands beside the product lie so that two neighbouring keys are one load, or are the same for all.
bool pairs_of_keys(AttentionFrame& frame) {
  const Stage& stage = frame.scores.stage;
  if (!frame.keys.is_constant() || frame.keys.value() % 2) return false;
  const std::set<int> used = reads_used(stage.outputs[0].value);
  return std::all_of(used.begin(), used.end(), [&](int r) {
    const Read& read = stage.reads[static_cast<size_t>(r)];
    const ParamLayout& layout = frame.k.layouts()[static_cast<size_t>(read.index)];
    const int axis = frame.view.key_axis;
    return !frame.scores.guarded(r) && (step_along(read.map, layout, axis) == 0 ||
                                        (byte_size(frame.scores.operand_of(read).dtype) * 2 >= 4 &&
                                         lies_together(read.map, layout, frame.scores.axis_count(), axis, 2)));
  });
}

/// Two neighbouring scores of a row at a time: their operands are loaded together. Keys are even in number.
void change_pairs(AttentionFrame& frame, const FragmentTexts& texts) {
  Kernel& k = frame.k;
  const StageOutput& score = frame.scores.stage.outputs[0];
  k.line("#pragma unroll");
  k.open("for (int b = 0; b < kKeys / 8; ++b)");
  k.line("#pragma unroll");
  k.open("for (int half = 0; half < 2; ++half)");
  const Dim row = k.declare_index("m", fmt::format("m0 + {} + lane / 4 + half * 8", texts.first));
  const Dim key = k.declare_index("n", "t * kKeys + b * 8 + lane % 4 * 2");
  const std::string guard = frame.guard_of_score(row, key, texts.rows, texts.keys),
                    at = texts.score("b", "half * 2 + j");
  if (!guard.empty()) k.open("if (" + guard + ")");
  StageText::Point point = frame.score_at(row, key, 0);
  point.given = load_vectors(frame.scores, point, frame.view.key_axis, 2, reads_used(score.value), "2");
  k.line("#pragma unroll");
  k.open("for (int j = 0; j < 2; ++j)");
  Dim& own = point.env[static_cast<size_t>(frame.view.key_axis)];
  own = own + Kernel::local("j");
  point.results = {at};
  ExprText text = frame.scores.at(point);
  k.line(fmt::format("{} = {};", at, text.emit(score.value, score.dtype)));
  k.close();
  if (!guard.empty()) {
    k.close();
    k.open("else");
    k.line("#pragma unroll");
    k.line(fmt::format("for (int j = 0; j < 2; ++j) {} = -__int_as_float(0x7f800000);", at));
    k.close();
  }
  k.close();
  k.close();
}

}  // namespace

/// Without operands beside the product, only the last step asks which keys there are.
void change_scores(AttentionFrame& frame, const FragmentTexts& texts) {
  Kernel& k = frame.k;
  const StageOutput& score = frame.scores.stage.outputs[0];
  if (!reads_used(score.value).empty()) {
    if (pairs_of_keys(frame)) return change_pairs(frame, texts);
    each_score(frame, texts, [&](const Dim& row, const Dim& key, const std::string& at) {
      frame.declare_score("changed", row, key, at, texts.rows, texts.keys);
      k.line(at + " = changed;");
    });
    return;
  }
  if (score.value.op() != ExprOp::result)
    each_score(frame, texts, [&](const Dim& row, const Dim& key, const std::string& at) {
      StageText::Point point = frame.score_at(row, key, 0);
      point.results = {at};
      ExprText text = frame.scores.at(point);
      k.line(fmt::format("{} = {};", at, text.emit(score.value, score.dtype)));
    });
  if (frame.keys.is_constant() && frame.keys.value() % texts.keys == 0) return;
  k.open(fmt::format("if ((t + 1) * kKeys > {})", k.text_of(frame.keys)));
  each_score(frame, texts, [&](const Dim&, const Dim& key, const std::string& at) {
    k.line(fmt::format("if ({} >= {}) {} = -__int_as_float(0x7f800000);", k.text_of(key), k.text_of(frame.keys), at));
  });
  k.close();
}

void update_rows(Kernel& k, const FragmentTexts& texts) {
  const std::string low = texts.score("j", "half * 2"), high = texts.score("j", "half * 2 + 1");
  k.line("#pragma unroll");
  k.open("for (int half = 0; half < 2; ++half)");
  k.line("float most = highest[half];");
  k.line("#pragma unroll");
  k.line("for (int j = 0; j < kKeys / 8; ++j)");
  k.line(fmt::format("  most = fmaxf(most, fmaxf({}, {}));", low, high));
  k.line("most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));");
  k.line("most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));");
  k.line("const float base = most == -__int_as_float(0x7f800000) ? 0.0f : most;");
  k.line("const float scaled = base * kLog2e;");
  k.line("const float keep = power_of_two(highest[half] * kLog2e - scaled);");
  k.line("highest[half] = most;");
  k.line("total[half] *= keep;");
  k.line("#pragma unroll");
  k.open("for (int j = 0; j < kKeys / 8; ++j)");
  k.line("#pragma unroll");
  k.open("for (int e = half * 2; e < half * 2 + 2; ++e)");
  const std::string score = texts.score("j", "e");
  k.line(fmt::format("{0} = power_of_two(fmaf({0}, kLog2e, -scaled));", score));
  k.line(fmt::format("total[half] += {};", score));
  k.close();
  k.close();
  k.line("#pragma unroll");
  k.line(fmt::format("for (int j = 0; j < kColumns / 8; ++j) {} *= keep, {} *= keep;", texts.sum("j", "half * 2"),
                     texts.sum("j", "half * 2 + 1")));
  k.close();
}

void finish_rows(AttentionFrame& frame) {
  Kernel& k = frame.k;
  k.line("total[half] += __shfl_xor_sync(0xffffffffu, total[half], 1);");
  k.line("total[half] += __shfl_xor_sync(0xffffffffu, total[half], 2);");
  k.line("const float factor = " + frame.factor("highest[half]", "total[half]") + ";");
}

void store_staged(AttentionFrame& frame, const Dim& m, const Dim& n, const StagedResults& results) {
  Kernel& k = frame.k;
  std::string inside = frame.within(m, frame.queries, results.rows);
  if (frame.columns != results.columns)
    inside += fmt::format("{}{} < {}", inside.empty() ? "" : " && ", k.text_of(n), frame.columns);
  if (!inside.empty()) k.open("if (" + inside + ")");
  StageText::Point point = frame.result_at(m, n, 0);
  if (results.vector > 1) {
    const auto complete = [](StageText::Point& element, const std::string& j) {
      element.results = {"staging[row][column + " + j + "]"};
    };
    emit_vector(frame.context, point, frame.view.column, results.vector, {}, complete);
  } else {
    point.results = {"staging[row][column]"};
    frame.context.store_outputs(point);
  }
  if (!inside.empty()) k.close();
}

}  // namespace opfuse::cuda
