// opfuse fuse: plan, apply, write; a report per pattern of what was applied, what was skipped and why.
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "compile_model.hpp"
#include "console.hpp"
#include "facts.hpp"
#include "fusion/user/pattern_file.hpp"
#include "inputs.hpp"
#include "ir/fir_file.hpp"
#include "ir/located.hpp"
#include "model_arg.hpp"
#include "onnx/write.hpp"
#include "outputs.hpp"
#include "report.hpp"
#include "talk.hpp"
#include "verb.hpp"
#include "words.hpp"
#include "written_model.hpp"

namespace opfuse::cli {
namespace {

struct Flags {
  std::string model, output, plan_out, target = "host";
  DimensionFlags dimensions;
  std::vector<std::string> fixed;
  PlanFlags plan;
  bool dry_run = false, json = false, verbose = false, flatten = false, force = false;
};

struct PatternRow {
  int applied = 0, skipped = 0;
  int64_t bytes_saved = 0;
  std::map<std::string, int> reasons;  ///< decline code -> how often
};

/// Named patterns first, those of the user's files before the catalogue's, then what the rule engine made.
std::vector<std::pair<std::string, PatternRow>> rows_of(const FusionPlan& plan, const std::vector<std::string>& files) {
  std::vector<std::pair<std::string, PatternRow>> rows;
  for (const FusionPattern& pattern : patterns_with(files)) rows.push_back({pattern.name, {}});
  const auto row_of = [&](const std::string& name) -> PatternRow& {
    for (auto& [known, row] : rows)
      if (known == name) return row;
    rows.push_back({name, {}});
    return rows.back().second;
  };
  for (const Candidate& candidate : plan.candidates) {
    PatternRow& row = row_of(candidate.pattern);
    if (candidate.apply) {
      ++row.applied;
      row.bytes_saved += candidate.bytes_saved;
      continue;
    }
    ++row.skipped;
    ++row.reasons[candidate.decline ? candidate.decline->code : "disabled"];
  }
  return rows;
}

std::string text_of(const std::map<std::string, int>& reasons) {
  std::vector<std::string> words;
  for (const auto& [code, count] : reasons) words.push_back(fmt::format("{} x {}", count, code));
  return fmt::format("{}", fmt::join(words, ", "));
}

struct Report {
  explicit Report(Compilation compilation) : compiled(std::move(compilation)) {}
  Compilation compiled;  ///< taken to its program, so that the ledger says what is executed
  Graph fused;           ///< before shaping: what is written
  std::vector<std::string> notes;
  std::optional<size_t> launches;  ///< nothing: the model does not compile
  SymbolValues dims;
  std::vector<std::pair<std::string, int>> operators;  ///< of the model as it was read
  std::optional<WrittenCheck> check;                   ///< of the file that was written
  double bytes_before = 0, bytes_after = 0, seconds = 0;
};

Report make_report(const Flags& flags) {
  const int64_t start = now_ns();
  const GivenModel model = open_graph(flags.model, "fuse", {.inputs = flags.fixed, .fix = Fix::all});
  check_output("-o", flags.output, {".onnx", ".fir"}, flags.force);
  check_output("--plan-out", flags.plan_out, {".json"}, flags.force);
  const SymbolValues dims = given_dimensions(*model.graph, flags.dimensions);
  CompilationOptions options = compilation_options(dims, flags.plan);
  options.allow_reference = true;
  options.algorithms.exact = true;  // launches are counted: no algorithm is probed for that
  const TargetInfo target = take_target(flags.target, options);
  Report report({*model.graph, target, std::move(options)});
  report.compiled.run_to(Milestone::fused);
  report.operators = operator_counts(*model.graph);
  report.dims = dims;
  report.fused = report.compiled.fused.clone();
  report.notes = report.compiled.notes();
  report.bytes_before = activation_bytes(report.compiled.prepared, report.dims);
  report.bytes_after = activation_bytes(report.fused, report.dims);
  if (const Program* program = lower_or_note(report.compiled, "launches are not counted"))
    report.launches = program->launches.size();
  report.seconds = static_cast<double>(now_ns() - start) * 1e-9;
  return report;
}

/// Operators before, and what is in their place: modules by name, and what no group holds.
std::vector<std::pair<std::string, int>> operators_after(const Graph& fused) {
  std::map<std::string, int> counts;
  for (const Node* node : fused.nodes())
    ++counts[node->op == fused_op() ? node->label.substr(0, node->label.find("__")) : source_operator(*node)];
  return {counts.begin(), counts.end()};
}

struct OperatorRow {
  std::string op;
  int before = 0, after = 0;
};

std::vector<OperatorRow> operator_rows(const Report& r) {
  std::vector<OperatorRow> rows;
  for (const auto& [op, count] : r.operators) rows.push_back({op, count, 0});
  for (const auto& [op, count] : operators_after(r.fused)) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&op = op](const OperatorRow& o) { return o.op == op; });
    if (row != rows.end())
      row->after = count;
    else
      rows.push_back({op, 0, count});
  }
  return rows;
}

Json points_of(const FusionPlan& plan) {
  Json points = Json::array();
  for (const Candidate* group : plan.applied())
    for (const QdqPoint& point : group->points)
      points.push_back({{"group", group->id}, {"point", point.point}, {"tensor", point.tensor}});
  return points;
}

Json to_json(const Report& r, const Flags& flags) {
  const FusionPlan& plan = r.compiled.plan;
  Json out = document("opfuse.fuse/1");
  out.update({{"model", flags.model},
              {"model_hash", plan.model},
              {"target", r.compiled.target.name},
              {"dims", json_of(r.dims)},
              {"nodes_before", r.compiled.prepared.nodes().size()},
              {"nodes_after", r.fused.nodes().size()},
              {"groups", plan.applied().size()},
              {"launches", r.launches ? Json(*r.launches) : Json(nullptr)}});
  Json modules = Json::object();
  int total = 0;
  for (const auto& [module, count] : plan.module_counts()) modules[module] = count, total += count;
  out["modules"] = std::move(modules);
  out["module_total"] = total;
  Json patterns = Json::array();
  for (const auto& [name, row] : rows_of(plan, flags.plan.patterns))
    patterns.push_back({{"pattern", name},
                        {"applied", row.applied},
                        {"skipped", row.skipped},
                        {"bytes_saved", row.bytes_saved},
                        {"reasons", Json(row.reasons)}});
  out["patterns"] = std::move(patterns);
  const QdqSummary points = qdq_summary(plan);
  out["qdq"] = {{"declared", points.declared},
                {"tensor_count", points.tensors.size()},
                {"tensors", points.tensors},
                {"points", points_of(plan)}};
  Json operators = Json::array();
  for (const OperatorRow& row : operator_rows(r))
    operators.push_back({{"operator", row.op}, {"before", row.before}, {"after", row.after}});
  out["operators"] = std::move(operators);
  out["read_back"] = r.check ? Json{{"ok", r.check->ok}, {"how", r.check->how}} : Json(nullptr);
  out["activation_bytes"] = {{"before", r.bytes_before}, {"after", r.bytes_after}};
  Json kept = Json::array();
  for (const Node* node : r.fused.nodes())
    if (node->op == opaque_op()) kept.push_back({{"node", node->name()}, {"operator", source_operator(*node)}});
  out["kept"] = std::move(kept);
  out["notes"] = r.notes;
  out["seconds"] = r.seconds;
  out["output"] = flags.dry_run ? "" : flags.output;
  return out;
}

void print_operators(const Report& r) {
  Table table({"operator", ">before", ">after"});
  int before = 0, after = 0;
  for (const OperatorRow& row : operator_rows(r)) {
    table.row({row.op, std::to_string(row.before), std::to_string(row.after)});
    before += row.before, after += row.after;
  }
  table.row({"all", std::to_string(before), std::to_string(after)});
  fmt::print("{}", table.text());
}

/// Operators that no group holds and no rule looked into: they are written back as they were read.
void print_kept(const Graph& fused) {
  std::map<std::string, std::vector<std::string>> kept;
  for (const Node* node : fused.nodes())
    if (node->op == opaque_op()) kept[source_operator(*node)].push_back(node->name());
  for (const auto& [op, names] : kept)
    fmt::print("  kept          {} {}, which opfuse does not understand: {}\n", names.size(), op, listed(names, 3));
  if (!kept.empty()) fmt::print("                opfuse check says what would help\n");
}

void print_text(const Report& r, const Flags& flags) {
  const FusionPlan& plan = r.compiled.plan;
  const double change = r.bytes_before > 0 ? 1 - r.bytes_after / r.bytes_before : 0;
  fmt::print("{}   {} -> {} ({}{})   activations {} -> {} ({})   {:.2f} s\n", flags.model,
             counted(r.compiled.prepared.nodes().size(), "node"), r.fused.nodes().size(),
             counted(plan.applied().size(), "group"), r.launches ? ", " + counted(*r.launches, "launch") : "",
             human_bytes(r.bytes_before), human_bytes(r.bytes_after),
             change < 0.005 ? "as before" : "-" + percent(change, 0), r.seconds);
  Table table({"pattern", ">applied", ">skipped", ">saved", "why skipped"});
  std::vector<std::string> nowhere;
  for (const auto& [name, row] : rows_of(plan, flags.plan.patterns)) {
    if (row.applied + row.skipped == 0) {
      nowhere.push_back(name);
      continue;
    }
    table.row({name, std::to_string(row.applied), std::to_string(row.skipped),
               human_bytes(static_cast<double>(row.bytes_saved)), text_of(row.reasons)});
  }
  fmt::print("{}", table.text());
  if (!nowhere.empty()) fmt::print("  nowhere       {}\n", fmt::join(nowhere, ", "));
  print_operators(r);
  std::vector<std::string> modules;
  int total = 0;
  for (const auto& [module, count] : plan.module_counts())
    modules.push_back(fmt::format("{} {}", count, module)), total += count;
  fmt::print("  modules       {} ({})\n", total, fmt::join(modules, ", "));
  const QdqSummary points = qdq_summary(plan);
  fmt::print("  Q/DQ points   {} declared on {} tensors\n", points.declared, points.tensors.size());
  print_kept(r.fused);
  if (r.check) fmt::print("  read back     {}: {}\n", r.check->ok ? "ok" : "FAILED", r.check->how);
  for (const std::string& text : grouped_notes(r.notes)) fmt::print("{}\n", fitted("  " + text));
  if (flags.verbose)
    for (const Candidate& c : plan.candidates)
      if (!c.apply)
        fmt::print("  skipped {}: {}\n", c.id, c.decline ? c.decline->code + ": " + c.decline->message : "disabled");
}

int run(const FlagSet& app, const Flags& flags) {
  check_companions(app, {{"--allow-stale", "--plan"}, {"--flatten", "--output"}});
  const bool text = flags.output.ends_with(".fir");
  if (text && flags.flatten)
    throw fail(E::bad_option, "--flatten does not apply: a .fir holds the fused nodes with their bodies");
  Report report = make_report(flags);
  if (!flags.plan_out.empty()) write_text_file(flags.plan_out, to_json(report.compiled.plan));
  if (!flags.dry_run && !flags.output.empty()) {
    if (text)
      write_fir(report.fused, flags.output, "fir 1 | fused from " + flags.model);
    else
      write_onnx(report.fused, flags.output, {.functions = !flags.flatten});
    std::error_code error;
    if (!text && std::filesystem::is_regular_file(flags.output, error))
      report.check = check_written(report.fused, flags.output);
    else if (!text)
      note(fmt::format("{} is not a regular file, so what was written is not read back", flags.output));
  }
  if (flags.json)
    print_json(to_json(report, flags));
  else
    print_text(report, flags);
  if (!flags.plan_out.empty()) say(fmt::format("wrote {}", flags.plan_out));
  if (!flags.dry_run && !flags.output.empty())
    say(fmt::format("wrote {} ({})", flags.output,
                    text ? "fused nodes with their bodies"
                    : flags.flatten
                        ? "plain operators: runs in any ONNX runtime"
                        : "a function per fused module, as ONNX Runtime takes them; for OpenVINO add --flatten"));
  if (!flags.json) say(fmt::format("next: opfuse explain {} --missed", flags.model));
  if (report.check && !report.check->ok) {
    warn(fmt::format("{} does not read back as the model it was written from: please report it", flags.output));
    return kCheckFailed;
  }
  return kOk;
}

}  // namespace

std::function<int()> add_fuse(FlagSet& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("MODEL", flags->model, kModelHelp)->required();
  app.add_option("-o,--output", flags->output, "write the fused model: .onnx (one function per module) or .fir")
      ->type_name("FILE");
  add_force_flag(app, flags->force);
  app.add_option("--plan-out", flags->plan_out, "save the plan as JSON, to edit and apply with --plan")
      ->type_name("FILE");
  add_plan_flags(app, flags->plan);
  add_target_flag(app, flags->target);
  add_dimension_flags(app, flags->dimensions);
  add_fixed_input_flag(app, flags->fixed);
  app.add_flag("--flatten", flags->flatten, "-o .onnx: plain operators, for runtimes without functions (OpenVINO)");
  app.add_flag("--dry-run", flags->dry_run, "plan and report without writing a model");
  app.add_flag("-v,--verbose", flags->verbose, "list every skipped candidate");
  app.add_flag("--json", flags->json, "as JSON (docs/json.md)");
  return [flags, &app] {
    take_plan(flags->dimensions, flags->plan);
    return run(app, *flags);
  };
}

}  // namespace opfuse::cli
