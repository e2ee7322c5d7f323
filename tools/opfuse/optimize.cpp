// opfuse optimize: a model to an .opf in one line. The search is the library's (optimize/search.hpp); here are its
// flags, its summary and its report.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "compile_model.hpp"
#include "console.hpp"
#include "inputs.hpp"
#include "interrupt.hpp"
#include "model_arg.hpp"
#include "optimize/search.hpp"
#include "outputs.hpp"
#include "report.hpp"
#include "report/document.hpp"
#include "report/page.hpp"
#include "report_document.hpp"
#include "report_subject.hpp"
#include "talk.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

struct Flags {
  std::string model, output, report, warmup = "200ms", duration = "2s";
  InputFlags inputs;
  CompileFlags compile;
  bool no_proof = false, json = false, force = false;
};

SearchOutcome search_model(const Flags& flags, const GivenModel& model, const ModelInputs& inputs) {
  CompilationOptions options = compilation_options(inputs.symbols, flags.compile);
  SearchRequest request;
  request.inputs = inputs.tensors;
  if (const auto second = other_inputs(*model.graph, flags.inputs, inputs)) request.other_inputs = second->tensors;
  request.seed = flags.inputs.seed;
  request.warmup_seconds = parse_duration(flags.warmup, 1e-3);
  request.seconds = parse_duration(flags.duration, 1);
  request.prove = !flags.no_proof;
  request.stop = interrupted;
  SearchOutcome outcome = search(*model.graph, parse_target(flags.compile.target), options, request);
  finish_progress();
  return outcome;
}

Json json_of(const OptimizeSide& side) {
  return {{"launches", side.launches},
          {"latency_ms", side.ms},
          {"bytes", side.bytes},
          {"arena_bytes", side.arena},
          {"constant_bytes", side.constants}};
}

Json to_json(const Optimized& o, const Flags& flags) {
  Json out = document("opfuse.optimize/1");
  Json rows = Json::array();
  for (const OptimizeCandidate& c : o.candidates) {
    const bool measured = c.skipped.empty() && c.ms > 0;
    rows.push_back({{"name", c.name},
                    {"flags", c.flags},
                    {"skipped", c.skipped},
                    {"latency_ms", measured ? Json(c.ms) : Json(nullptr)},
                    {"launches", c.launches},
                    {"arena_bytes", c.arena},
                    {"constant_bytes", c.constants}});
  }
  out.update({{"model", flags.model},
              {"output", flags.output},
              {"target", o.target},
              {"threads", o.threads},
              {"dims", cli::json_of(o.dims)},
              {"seed", flags.inputs.seed},
              {"candidates", std::move(rows)},
              {"chosen", o.chosen},
              {"proof", o.groups == 0 ? Json(nullptr)
                                      : Json{{"groups", o.groups},
                                             {"worst_of_bound", o.worst_of_bound},
                                             {"output_error", o.output_error},
                                             {"failures", o.failures}}},
              {"fused", json_of(o.fused)},
              {"unfused", json_of(o.unfused)},
              {"fused_over_unfused", cli::json_of(Interval{o.time.low, o.time.estimate, o.time.high})},
              {"slower", o.slower()},
              {"larger", o.larger()},
              {"ok", o.ok()},
              {"interrupted", o.interrupted}});
  return out;
}

/// The page of the chosen program, from the compilation and the proof at hand.
void write_report(const FlagSet& app, const Flags& flags, SearchOutcome& outcome) {
  SubjectRequest request{.model = flags.model, .inputs = flags.inputs, .compile = flags.compile};
  request.compiled = &outcome.compilation;
  if (outcome.proof) request.proof = &*outcome.proof;
  const auto held = make_subject(app, request);
  Json models = Json::array();
  models.push_back(report::model_json(held->subject, {}));
  const std::string json = report_of(std::move(models)).dump(-1, ' ', false, Json::error_handler_t::replace);
  write_text_file(flags.report, report::page_with(json, "opfuse: " + flags.model));
  say(fmt::format("wrote {}", flags.report));
}

int run(const FlagSet& app, Flags flags) {
  catch_interrupts();
  check_companions(app, {{"--allow-stale", "--plan"}});
  bound_threads(flags.compile);
  GivenModel model = open_graph(flags.model, "optimize", {.inputs = flags.inputs.files});
  check_output("-o", flags.output, {".opf"}, flags.force);
  check_output("--report", flags.report, {".html"}, flags.force);
  name_sources(*model.graph);
  const ModelInputs inputs = make_inputs(*model.graph, flags.inputs);
  SearchOutcome outcome = search_model(flags, model, inputs);
  const Optimized& result = outcome.result;
  show_limits(result.executable);
  warn_emulated(result.executable);
  const bool proven = result.failures.empty();
  if (!flags.output.empty() && proven && !result.interrupted) {
    result.executable.save(flags.output);
    say(fmt::format("wrote {} (contains machine code; next: opfuse run {})", flags.output, flags.output));
  }
  if (flags.json)
    print_json(to_json(result, flags));
  else
    fmt::print("{}   {}", flags.model, result.text());
  if (!flags.output.empty() && !proven) warn(flags.output + " was not written: the proof failed");
  if (result.interrupted) {
    warn("interrupted: nothing was written; the numbers are those so far");
    return kInterrupted;
  }
  if (!flags.report.empty()) write_report(app, flags, outcome);
  return exit_code(result.ok() ? kOk : kCheckFailed);
}

}  // namespace

std::function<int()> add_optimize(FlagSet& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("MODEL", flags->model, kModelHelp)->required();
  app.add_option("-o,--output", flags->output, "the .opf of the fastest program; it contains machine code")
      ->type_name("FILE");
  app.add_option("--report", flags->report, "write the page of the fastest program (docs/report.md)")
      ->type_name("FILE.html");
  add_force_flag(app, flags->force);
  app.add_flag("--no-proof", flags->no_proof, "leave out the proof that the program equals the model");
  app.add_option("--warmup,--warmUp", flags->warmup, "time of uncounted runs")->capture_default_str();
  app.add_option("--duration", flags->duration, "time of counted runs, of each program")->capture_default_str();
  add_input_flags(app, flags->inputs);
  add_compile_flags(app, flags->compile);
  app.add_flag("--json", flags->json, "as JSON (docs/json.md)");
  return [flags, &app] {
    take_plan(flags->inputs.dimensions, flags->compile.plan);
    return run(app, *flags);
  };
}

}  // namespace opfuse::cli
