// Remarks in the order of a report: groups, compounds, what was missed.
#include "driver/remarks.hpp"

#include <fmt/format.h>

#include "fusion/explain/compounds.hpp"
#include "fusion/explain/explain.hpp"
#include "target/capabilities.hpp"

namespace opfuse {

namespace {

/// How remarks speak of products that a pass gives another precision.
struct PrecisionWords {
  const char *pass, *precision, *code, *done, *refused;
};
constexpr PrecisionWords kPrecisions[] = {
    {"sum-codes", "int8", "codes", "the codes are multiplied and added in i32", "operands are dequantised: "},
    {"narrow-factors", "bf16", "asked_for", "{0} factors, added up in f32; {0} between kernels", "f32 factors: "},
    {"pack-codes", "codes", "decoded",
     "weights lie as codes in memory, decoded by the kernel; products, sums and data in f32", "weights become f32: "},
    {"narrow-weights", "f16", "stored",
     "weights of 16 bits in memory, widened in registers; products, sums and data in f32", "f32 weights: "},
    {"narrow-maps", "f16", "rounded", "its result lies in memory as {0}, rounded once when stored; computed in f32",
     "its result stays f32: "}};

/// What products are computed in where the model or the plan asks for another type than f32, and why.
std::vector<Remark> precision_remarks(const PrecisionWords& words, const std::vector<ShapeVerdict>& verdicts) {
  std::vector<Remark> remarks;
  for (const ShapeVerdict& v : verdicts) {
    Remark& r = remarks.emplace_back();
    r.kind = "precision";
    const std::string precision = v.subject.empty() ? words.precision : v.subject;
    r.rule = v.refused ? "f32" : precision;
    r.anchor = v.nodes.front();
    r.code = v.refused ? v.refused->code : words.code;
    r.message = v.refused ? words.refused + v.refused->message : fmt::format(fmt::runtime(words.done), precision);
    if (v.refused) r.evidence = v.refused->evidence;
    if (const int64_t lossy = v.number("bias_lossy"); lossy > 0) {
      Remark bias = r;
      bias.code = "bias_lossy";
      bias.message =
          fmt::format("the bias is added in f32: {} of its {} channels would round in {}, by up to {} ULP of f32",
                      lossy, v.number("bias_channels"), precision, v.number("bias_ulps"));
      remarks.push_back(std::move(bias));
    }
  }
  return remarks;
}

}  // namespace

std::vector<Remark> remarks_on(const Compilation& c, const ExplainRequest& request) {
  const std::vector<FusionPattern> patterns =
      patterns_of({.patterns = request.patterns, .pattern_files = request.pattern_files});
  if (!request.node.empty()) return about_node(c.prepared, c.plan, request.node, patterns);
  std::vector<Remark> remarks;
  const auto add = [&](std::vector<Remark> more) {
    remarks.insert(remarks.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  if (request.passed) add(passed(c.plan));
  if (request.passed && request.missed)
    add(compound_remarks(c.prepared, c.plan, has_generator(c.target) ? &c.verdicts : nullptr,
                         c.target.kind == "cpu" ? &c.target : nullptr));
  for (const PrecisionWords& words : kPrecisions)
    if (request.passed) add(precision_remarks(words, of_pass(c.verdicts, words.pass)));
  if (request.missed) add(missed(c.prepared, c.plan, patterns));
  return remarks;
}

}  // namespace opfuse
