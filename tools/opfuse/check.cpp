// opfuse check: everything that keeps a model from being compiled, at once: problems of the file, operators that are
// not known, nodes without a kernel, values without a shape; with what would help. Nothing is generated or run.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "compile_model.hpp"
#include "console.hpp"
#include "inputs.hpp"
#include "model_arg.hpp"
#include "onnx/read.hpp"
#include "report.hpp"
#include "verb.hpp"
#include "words.hpp"

namespace opfuse::cli {
namespace {

struct Flags {
  std::string model, target = "host";
  std::vector<std::string> fixed;
  DimensionFlags dimensions;
  bool allow_reference = false, json = false;
};

struct Problem {
  std::string kind;  ///< "file", "operator", "compile"
  Obstacle at;
  std::string code;
};

struct Findings {
  std::vector<Problem> problems;
  std::vector<std::string> remarks;  ///< of the file; the model compiles all the same
  size_t nodes = 0, launches = 0;
  std::string target;
};

Problem problem_of(const char* kind, const Diagnostic& d) {
  return {kind, {d.node, d.op.substr(0, d.op.find(',')), d.message, d.hint}, d.code};
}

/// Operators without a kernel in what could be read beside the problems of the file; stand-ins are those problems.
void look_through_rest(const Graph& rest, const Flags& flags, Findings& findings) {
  const TargetInfo target = parse_target(flags.target);
  try {
    Compilation compilation(rest, target, {});
    compilation.run_to(Milestone::shaped);
    for (Obstacle& obstacle : obstacles_on(compilation.fused, target, {.allow_reference = flags.allow_reference}))
      if (!obstacle.follows && obstacle.reason.find(kUnreadable) == std::string::npos)
        findings.problems.push_back({"operator", std::move(obstacle), "E0502"});
  } catch (const Error& error) {  // of a graph with holes: those of the file come first
    if (exit_code_of(error.diagnostic()) == kInternal) throw;
  }
}

/// Reads the model; what is wrong with the file becomes problems instead.
std::optional<GivenModel> read(const Flags& flags, Findings& findings) {
  std::vector<Diagnostic> wrong;
  std::optional<Graph> rest;
  try {
    return open_graph(
        flags.model, "check",
        {.inputs = flags.fixed, .fix = Fix::all, .problems = &wrong, .rest = &rest, .remarks = &findings.remarks});
  } catch (const Error& error) {
    if (wrong.empty() && exit_code_of(error.diagnostic()) != kBadModel) throw;
    if (wrong.empty()) wrong.push_back(error.diagnostic());
  }
  for (const Diagnostic& d : wrong) findings.problems.push_back(problem_of("file", d));
  if (rest) look_through_rest(*rest, flags, findings);
  return std::nullopt;
}

void look_through(const GivenModel& model, const Flags& flags, Findings& findings) {
  const TargetInfo target = parse_target(flags.target);
  findings.target = target.name;
  findings.nodes = model.graph->nodes().size();
  CompilationOptions options = compilation_options(given_dimensions(*model.graph, flags.dimensions), PlanFlags{});
  options.allow_reference = flags.allow_reference;
  Compilation compilation(*model.graph, target, options);
  compilation.run_to(Milestone::shaped);
  for (Obstacle& obstacle : obstacles_on(compilation.fused, target, {.allow_reference = flags.allow_reference}))
    findings.problems.push_back({"operator", std::move(obstacle), "E0502"});
  if (!findings.problems.empty()) return;
  compilation.run_to(Milestone::lowered);
  findings.launches = compilation.program.launches.size();
}

Findings check(const Flags& flags) {
  Findings findings;
  const std::optional<GivenModel> model = read(flags, findings);
  if (!model) return findings;
  try {
    look_through(*model, flags, findings);
  } catch (const Error& error) {
    const int code = exit_code_of(error.diagnostic());
    if (code == kUsage || code == kInternal) throw;
    findings.problems.push_back(problem_of("compile", error.diagnostic()));
  }
  return findings;
}

void print_json_of(const Findings& findings, const Flags& flags) {
  Json rows = Json::array();
  for (const Problem& p : findings.problems)
    rows.push_back({{"kind", p.kind},
                    {"code", p.code},
                    {"node", p.at.node},
                    {"operator", p.at.op},
                    {"problem", p.at.reason},
                    {"remedy", p.at.remedy},
                    {"follows", p.at.follows},
                    {"interpreted", p.at.interpreted}});
  Json out = document("opfuse.check/1");
  out.update({{"model", flags.model},
              {"target", findings.target},
              {"nodes", findings.nodes},
              {"compiles", findings.problems.empty()},
              {"launches", findings.launches},
              {"problems", std::move(rows)},
              {"remarks", findings.remarks}});
  print_json(out);
}

/// Causes first, each with its remedy; what only follows from them is counted and named.
void print_text(const Findings& findings, const Flags& flags) {
  if (findings.problems.empty()) {
    fmt::print("{}   compiles for {}: {}, {}\n", flags.model, findings.target, counted(findings.nodes, "node"),
               counted(findings.launches, "launch"));
    for (const std::string& remark : findings.remarks) fmt::print("  remark: {}\n", remark);
    return;
  }
  std::vector<std::string> behind;
  for (const Problem& p : findings.problems)
    if (p.at.follows) behind.push_back(fmt::format("{} ({})", p.at.node, p.at.op));
  const size_t causes = findings.problems.size() - behind.size();
  fmt::print("{}   {} problem{}\n", flags.model, causes, causes == 1 ? "" : "s");
  for (const Problem& p : findings.problems) {
    if (p.at.follows) continue;
    const std::string where =
        p.at.node.empty() ? std::string("the file") : fmt::format("{} \"{}\"", p.at.op, p.at.node);
    fmt::print("  {}: {} [{}]\n", p.at.node.empty() && !p.at.op.empty() ? p.at.op : where, p.at.reason, p.code);
    if (!p.at.remedy.empty()) fmt::print("      {}\n", p.at.remedy);
  }
  if (!behind.empty())
    fmt::print("  {} more node{} computed from these, whose shapes are not known: {}\n", behind.size(),
               behind.size() == 1 ? " is" : "s are", listed(behind, 3));
  for (const std::string& remark : findings.remarks) fmt::print("  remark: {}\n", remark);
}

int run(const Flags& flags) {
  const Findings findings = check(flags);
  if (flags.json)
    print_json_of(findings, flags);
  else
    print_text(findings, flags);
  return findings.problems.empty() ? kOk : kCheckFailed;
}

}  // namespace

std::function<int()> add_check(FlagSet& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("MODEL", flags->model, kModelHelp)->required();
  add_target_flag(app, flags->target);
  add_dimension_flags(app, flags->dimensions);
  add_fixed_input_flag(app, flags->fixed);
  app.add_flag("--allow-reference", flags->allow_reference, "operators that the interpreter can run are not a problem");
  app.add_flag("--json", flags->json, "as JSON (docs/json.md)");
  return [flags] { return run(*flags); };
}

}  // namespace opfuse::cli
