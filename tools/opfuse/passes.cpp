// opfuse passes: the graph passes; with MODEL and --run, replays one or more on a graph and prints it (for
// reproducers).
#include "passes/passes.hpp"

#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "compile_model.hpp"
#include "console.hpp"
#include "driver/shape_for_target.hpp"
#include "model_arg.hpp"
#include "report.hpp"
#include "talk.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

struct Flags {
  std::string model, dump, target;
  std::vector<std::string> run;
  bool json = false;
};

int list_passes(bool json) {
  Json rows = Json::array();
  Table table({"pass", "runs", "what it does"});
  const auto add = [&](const std::string& name, const char* stage, const char* runs, const std::string& summary) {
    rows.push_back({{"name", name}, {"stage", stage}, {"summary", summary}});
    table.row({name, runs, summary});
  };
  for (const Pass& pass : all_passes()) add(pass.name, "preparing", "before fusion", pass.summary);
  for (const ShapingPass& pass : shaping_passes()) add(pass.name, "shaping", "on fused graphs", pass.summary);
  if (json) {
    Json out = document("opfuse.passes/1");
    out["passes"] = std::move(rows);
    print_json(out);
  } else {
    fmt::print("{}", table.text());
  }
  return kOk;
}

int replay(const Flags& flags) {
  GivenModel model = open_graph(flags.model, "passes");
  std::vector<std::string> names = flags.run;
  const Reproducer named = flags.model.ends_with(".fir") ? parse_reproducer(read_text_file(flags.model)) : Reproducer{};
  if (names.empty() && !named.pass.empty()) names.push_back(named.pass);
  const std::string target = !flags.target.empty() ? flags.target : named.target.empty() ? "host" : named.target;
  std::vector<Pass> passes;
  for (const std::string& name : names) passes.push_back(pass_for(name, parse_target(target)));
  if (passes.empty()) passes = cleaning_passes();
  PassOptions options;
  options.dump_dir = flags.dump;
  options.target = named.target;
  const PassRun done = run_passes(*model.graph, passes, options);
  for (const PassRecord& record : done.records)
    tell(fmt::format("  {:<34} {:>7.2f} ms   {} -> {} nodes{}\n", record.name, record.milliseconds, record.nodes_before,
                     record.nodes_after, record.changed ? "" : "   unchanged"));
  for (const std::string& text : done.notes) note(text);
  fmt::print("{}", print(*model.graph));
  return kOk;
}

}  // namespace

std::function<int()> add_passes(FlagSet& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("MODEL", flags->model,
                 "run passes on this model and print the graph; a reproducer names its own pass");
  app.add_option("--run", flags->run, "these passes, in this order (default: all cleaning passes)")->delimiter(',');
  app.add_option("--dump", flags->dump, "write the graph after each changing pass")->type_name("DIR");
  app.add_option("--target", flags->target,
                 "what shaping passes work for (default: that of the reproducer, else host)");
  add_reproducer_flag(app);
  app.add_flag("--json", flags->json, "the list as JSON");
  return [flags] { return flags->model.empty() ? list_passes(flags->json) : replay(*flags); };
}

}  // namespace opfuse::cli
