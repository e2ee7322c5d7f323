// opfuse tune: the schedules of a model's kernels, measured on this machine and kept in a file. The search is the
// library's (optimize/tune.hpp).
#include "optimize/tune.hpp"

#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "compile_model.hpp"
#include "console.hpp"
#include "inputs.hpp"
#include "interrupt.hpp"
#include "model_arg.hpp"
#include "outputs.hpp"
#include "report.hpp"
#include "talk.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

constexpr size_t kShown = 10;  ///< changed kernels of the summary; --json has all

struct Flags {
  std::string model, output, time = "5m", warmup = "200ms", duration = "2s";
  InputFlags inputs;
  CompileFlags compile;
  size_t schedules = TuneRequest{}.schedules;
  bool no_proof = false, json = false, force = false;
};

Tuned tune_model(const Flags& flags, const GivenModel& model, const ModelInputs& inputs) {
  TuneRequest request;
  request.inputs = inputs.tensors;
  if (const auto second = other_inputs(*model.graph, flags.inputs, inputs)) request.other_inputs = second->tensors;
  request.seed = flags.inputs.seed;
  request.limit_seconds = parse_duration(flags.time, 1);
  request.schedules = flags.schedules;
  request.warmup_seconds = parse_duration(flags.warmup, 1e-3);
  request.seconds = parse_duration(flags.duration, 1);
  request.prove = !flags.no_proof;
  request.stop = interrupted;
  Tuned tuned = tune(*model.graph, parse_target(flags.compile.target),
                     compilation_options(inputs.symbols, flags.compile), request);
  finish_progress();
  return tuned;
}

Json to_json(const Tuned& t, const Flags& flags) {
  Json out = document("opfuse.tune/1");
  Json changed = Json::array();
  for (const TunedKernel& k : t.changed)
    changed.push_back({{"kernel", k.name},
                       {"launches", k.launches},
                       {"before", k.before},
                       {"after", k.after},
                       {"before_us", k.before_us},
                       {"after_us", k.after_us}});
  const bool measured = t.tuned_ms > 0;
  out.update({{"model", flags.model},
              {"output", flags.output},
              {"target", t.compilation->target.name},
              {"threads", t.threads},
              {"kernels", t.kernels},
              {"known", t.known},
              {"schedules", t.schedules},
              {"seconds", t.seconds},
              {"out_of_time", t.out_of_time},
              {"interrupted", t.stopped},
              {"changed", std::move(changed)},
              {"same", t.same},
              {"tuned_ms", measured ? Json(t.tuned_ms) : Json(nullptr)},
              {"untuned_ms", measured ? Json(t.untuned_ms) : Json(nullptr)},
              {"tuned_over_untuned", measured ? json_of(t.time) : Json(nullptr)},
              {"proven", t.proof ? Json(t.proof->ok()) : Json(nullptr)},
              {"kept", t.kept},
              {"timings", t.file}});
  return out;
}

void print_verdict(const Tuned& t, const Flags& flags) {
  if (t.same) {
    fmt::print("  time      the program is the predicted one: nothing measured was faster\n");
    return;
  }
  fmt::print("  time      {} ms, as predicted {} ms: {:.2f}x [{:.2f}, {:.2f}], {}\n", milliseconds(t.tuned_ms),
             milliseconds(t.untuned_ms), 1 / t.time.estimate, 1 / t.time.high, 1 / t.time.low,
             t.time.high < 1 ? "faster" : "not faster beyond noise");
  if (t.proof)
    fmt::print("  proof     {} groups: {}\n", t.proof->groups.size(), t.proof->ok() ? "equal to the model" : "FAILED");
  if (t.kept)
    fmt::print("  kept      in {}: opfuse compile {} --measure --timings {} takes them, on this machine\n", t.file,
               flags.model, t.file);
  else
    fmt::print("  kept      nothing: the program stays as predicted\n");
}

void print_text(const Tuned& t, const Flags& flags) {
  fmt::print("{}   {}   {} thread{}\n", flags.model, t.compilation->target.name, t.threads, t.threads == 1 ? "" : "s");
  fmt::print("  kernels   {} ({} known from before), {} schedules measured in {:.0f} s{}\n", t.kernels, t.known,
             t.schedules, t.seconds,
             t.out_of_time ? fmt::format("; --time {} ended the search", flags.time) : std::string());
  fmt::print("  faster    {} kernel{}\n", t.changed.size(), t.changed.size() == 1 ? "" : "s");
  for (size_t i = 0; i < std::min(kShown, t.changed.size()); ++i) {
    const TunedKernel& k = t.changed[i];
    fmt::print("    {:7.1f} -> {:7.1f} us   {}{}\n      {} -> {}\n", k.before_us, k.after_us, k.name,
               k.launches > 1 ? fmt::format(" and {} more", k.launches - 1) : std::string(), k.before, k.after);
  }
  if (t.changed.size() > kShown) fmt::print("    and {} more (--json)\n", t.changed.size() - kShown);
  print_verdict(t, flags);
}

int run(Flags flags) {
  catch_interrupts();
  flags.compile.algorithms.measure = true;
  bound_threads(flags.compile);
  GivenModel model = open_graph(flags.model, "tune", {.inputs = flags.inputs.files});
  check_output("-o", flags.output, {".opf"}, flags.force);
  const ModelInputs inputs = make_inputs(*model.graph, flags.inputs);
  const Tuned tuned = tune_model(flags, model, inputs);
  show_limits(*tuned.compilation);
  const bool proven = !tuned.proof || tuned.proof->ok();
  if (!flags.output.empty()) {
    Executable::from_artifact(tuned.compilation->artifact).save(flags.output);
    say(fmt::format("wrote {} (contains machine code; next: opfuse run {})", flags.output, flags.output));
  }
  if (flags.json)
    print_json(to_json(tuned, flags));
  else
    print_text(tuned, flags);
  if (tuned.stopped) warn("interrupted: what was found until then was checked");
  return exit_code(proven ? kOk : kCheckFailed);
}

}  // namespace

std::function<int()> add_tune(FlagSet& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("MODEL", flags->model, kModelHelp)->required();
  app.add_option("-o,--output", flags->output, "the .opf of the tuned program; it contains machine code")
      ->type_name("FILE");
  add_force_flag(app, flags->force);
  app.add_option("--time", flags->time, "stop trying schedules after this long")->capture_default_str();
  app.add_option("--schedules", flags->schedules, "schedules tried of each kernel, the fastest by prediction")
      ->range(1, 1 << 10)
      ->capture_default_str();
  app.add_flag("--no-proof", flags->no_proof, "leave out the proof that the tuned program equals the model");
  app.add_option("--warmup,--warmUp", flags->warmup, "time of uncounted runs of the whole model")
      ->capture_default_str();
  app.add_option("--duration", flags->duration, "time of counted runs of the whole model, of each program")
      ->capture_default_str();
  add_input_flags(app, flags->inputs);
  add_compile_flags(app, flags->compile);
  app.add_flag("--json", flags->json, "as JSON (docs/json.md)");
  return [flags] {
    take_plan(flags->inputs.dimensions, flags->compile.plan);
    return run(*flags);
  };
}

}  // namespace opfuse::cli
