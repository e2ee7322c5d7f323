// opfuse passes: the graph passes; with MODEL and --run, replays one or more on a graph and prints it (for
// reproducers).
#include "passes/passes.hpp"

#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "compile_model.hpp"
#include "console.hpp"
#include "model_arg.hpp"
#include "report.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

struct Flags {
  std::string model, dump;
  std::vector<std::string> run;
  bool json = false;
};

int list_passes(bool json) {
  Json rows = Json::array();
  Table table({"pass", "what it does"});
  for (const Pass& pass : all_passes()) {
    rows.push_back({{"name", pass.name}, {"summary", pass.summary}});
    table.row({pass.name, pass.summary});
  }
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
  if (names.empty())
    if (const std::string name = pass_of_reproducer(read_text_file(flags.model)); !name.empty()) names.push_back(name);
  std::vector<Pass> passes;
  for (const std::string& name : names) passes.push_back(pass_named(name));
  if (passes.empty()) passes = cleaning_passes();
  PassOptions options;
  options.dump_dir = flags.dump;
  for (const PassRecord& record : run_passes(*model.graph, passes, options).records)
    fmt::print(stderr, "  {:<34} {:>7.2f} ms   {} -> {} nodes{}\n", record.name, record.milliseconds,
               record.nodes_before, record.nodes_after, record.changed ? "" : "   unchanged");
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
  add_reproducer_flag(app);
  app.add_flag("--json", flags->json, "the list as JSON");
  return [flags] { return flags->model.empty() ? list_passes(flags->json) : replay(*flags); };
}

}  // namespace opfuse::cli
