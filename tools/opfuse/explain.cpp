// opfuse explain: why each node is, or is not, fused.
#include "fusion/explain.hpp"

#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "compile_model.hpp"
#include "fusion/pattern_file.hpp"
#include "inputs.hpp"
#include "model_arg.hpp"
#include "report.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

struct Flags {
  std::string model, node, target = "host";
  DimensionFlags dimensions;
  PlanFlags plan;
  size_t top = 0;
  bool missed = false, passed = false, json = false, jsonl = false;
};

std::vector<Remark> remarks_of(const Planned& planned, const Flags& flags) {
  std::vector<Remark> remarks;
  const std::vector<FusionPattern> patterns = patterns_with(flags.plan.patterns);
  if (!flags.node.empty()) {
    remarks = about_node(planned.prepared, planned.plan, flags.node, patterns);
  } else {
    if (!flags.missed) remarks = passed(planned.plan);
    if (!flags.passed) {
      const std::vector<Remark> more = missed(planned.prepared, planned.plan, patterns);
      remarks.insert(remarks.end(), more.begin(), more.end());
    }
  }
  if (flags.top > 0 && remarks.size() > flags.top) {
    note(fmt::format("{} of {} remarks shown (--top)", flags.top, remarks.size()));
    remarks.resize(flags.top);
  }
  return remarks;
}

int run(const Flags& flags) {
  if (flags.missed && flags.passed) throw fail(E::bad_option, "--missed and --passed exclude each other");
  const GivenModel model = open_graph(flags.model, "explain");
  const Planned planned = plan_model(*model.graph, given_dimensions(*model.graph, flags.dimensions),
                                     parse_target(flags.target), flags.plan);
  const std::vector<Remark> remarks = remarks_of(planned, flags);
  if (flags.jsonl) {
    const Json all = Json::parse(remarks_json(remarks));
    for (const Json& remark : all.at("remarks")) fmt::print("{}\n", remark.dump());
  } else if (flags.json) {
    fmt::print("{}\n", Json::parse(remarks_json(remarks)).dump(2));
  } else {
    for (const std::string& text : grouped_notes(planned.notes)) fmt::print("CONVERSION {}\n", text);
    fmt::print("{}", remarks_text(remarks));
    if (!flags.node.empty())
      fmt::print("\n{}", explain_node(planned.prepared, flags.node, patterns_with(flags.plan.patterns)));
    if (remarks.empty()) fmt::print("nothing to say: no candidate was missed\n");
  }
  return kOk;
}

}  // namespace

std::function<int()> add_explain(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("MODEL", flags->model, kModelHelp)->required();
  app.add_flag("--missed", flags->missed, "only what was not fused, most bytes first");
  app.add_flag("--passed", flags->passed, "only what was fused");
  app.add_option("--node", flags->node, "everything about one node: all patterns tried there, best partial match first")
      ->type_name("NAME");
  app.add_option("--top", flags->top, "at most so many remarks");
  add_plan_flags(app, flags->plan);
  add_target_flag(app, flags->target);
  add_dimension_flags(app, flags->dimensions);
  app.add_flag("--json", flags->json, "one JSON document");
  app.add_flag("--jsonl", flags->jsonl, "one JSON object per line");
  return [flags] { return run(*flags); };
}

}  // namespace opfuse::cli
