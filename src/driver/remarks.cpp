// Remarks in the order of a report: groups, compounds, what was missed.
#include "driver/remarks.hpp"

#include "fusion/explain/compounds.hpp"
#include "fusion/explain/explain.hpp"

namespace opfuse {

/// What products of quantised operands are computed in, and why.
static std::vector<Remark> precision_remarks(const std::vector<ShapeVerdict>& verdicts) {
  std::vector<Remark> remarks;
  for (const ShapeVerdict& v : verdicts) {
    Remark& r = remarks.emplace_back();
    r.kind = "precision";
    r.rule = v.refused ? "f32" : "int8";
    r.anchor = v.nodes.front();
    r.code = v.refused ? v.refused->code : "codes";
    r.message =
        v.refused ? "operands are dequantised: " + v.refused->message : "the codes are multiplied and added in i32";
    if (v.refused) r.evidence = v.refused->evidence;
  }
  return remarks;
}

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
    add(!c.target.traits.shapes_for_caches ? compound_remarks(c.prepared, c.plan)
                                           : compound_remarks(c.prepared, c.plan, &c.verdicts));
  if (request.passed) add(precision_remarks(of_pass(c.verdicts, "sum-codes")));
  if (request.missed) add(missed(c.prepared, c.plan, patterns));
  return remarks;
}

}  // namespace opfuse
