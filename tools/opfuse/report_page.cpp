// opfuse report: a model to look at, in one file: its graph before and after, every launch, what was not fused and what
// that costs, roofline, timeline, memory, errors. Or a part of its graph as a drawing.
#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/fail.hpp"
#include "interrupt.hpp"
#include "outputs.hpp"
#include "report.hpp"
#include "report/document.hpp"
#include "report/page.hpp"
#include "report/write_graph.hpp"
#include "report_document.hpp"
#include "report_subject.hpp"
#include "talk.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

struct Flags {
  std::string model, other, output, format, view = "before", node, warmup = "200ms", duration = "1s";
  InputFlags inputs;
  CompileFlags compile;
  int radius = 3, timeline_parts = static_cast<int>(report::DocumentOptions{}.timeline_parts);
  bool vs_unfused = false, compare = false, no_measure = false, no_code = false, force = false;
};

/// The format that was asked for, else that of the suffix, else a page.
std::string format_of(const Flags& flags) {
  if (!flags.format.empty()) return flags.format;
  const std::string suffix = std::filesystem::path(flags.output).extension().string();
  for (const char* known : {"json", "svg", "dot"})
    if (suffix == std::string(".") + known) return known;
  return "html";
}

std::vector<std::string> suffixes_of(const Flags& flags) {
  if (!flags.format.empty()) return {"." + flags.format};
  return {".html", ".json", ".svg", ".dot"};
}

void check_flags(const FlagSet& app, const Flags& flags, const std::string& format) {
  const bool graph = format == "svg" || format == "dot";
  if (format == "html" && flags.output.empty())
    throw fail(E::bad_option, "nothing to write").hint("add -o report.html, or --format svg, dot or json for stdout");
  if (graph)
    refuse_flags(app,
                 {"OTHER", "--vs-unfused", "--compare", "--no-measure", "--no-code", "--warmup", "--duration",
                  "--timeline-parts"},
                 "a drawing has the graph of one model alone", "leave it out");
  else
    refuse_flags(app, {"--node", "--radius", "--view"}, "a report has the whole graph", "add --format svg or dot");
  if (flags.vs_unfused && !flags.other.empty())
    throw fail(E::bad_option, "--vs-unfused does not apply: two models are given").hint("leave one out");
  check_companions(app, {{"--allow-stale", "--plan"}, {"--radius", "--node"}});
  check_output("-o", flags.output, suffixes_of(flags), flags.force);
}

SubjectRequest request_of(const Flags& flags, const std::string& model, bool unfused) {
  return {model,
          flags.inputs,
          flags.compile,
          unfused,
          !flags.no_measure,
          !flags.no_code,
          flags.compare,
          parse_duration(flags.warmup, 1e-3),
          parse_duration(flags.duration, 1)};
}

Json report_document(const FlagSet& app, const Flags& flags) {
  Json models = Json::array();
  const auto add = [&](const std::string& name, bool unfused) {
    const auto held = make_subject(app, request_of(flags, name, unfused));
    models.push_back(report::model_json(held->subject, {static_cast<size_t>(flags.timeline_parts)}));
  };
  add(flags.model, false);
  if (flags.vs_unfused) add(flags.model, true);
  if (!flags.other.empty()) add(flags.other, false);
  return report_of(std::move(models));
}

std::string drawing(const FlagSet& app, const Flags& flags, const std::string& format) {
  const auto held = make_views(app, request_of(flags, flags.model, false));
  const report::Views& views = held->subject.views;
  if (!views.missing.empty()) throw fail(E::bad_option, "'{}' cannot be drawn: {}", flags.model, views.missing);
  report::View view = flags.view == "before" ? views.before : views.after;
  if (!flags.node.empty()) view = report::part_of(view, flags.node, flags.radius);
  return format == "svg" ? report::to_svg(view, report::draw(view, views.units)) : report::to_dot(view, views.units);
}

int run(const FlagSet& app, Flags flags) {
  catch_interrupts();
  const std::string format = format_of(flags);
  check_flags(app, flags, format);
  bound_threads(flags.compile);
  std::string text;
  if (format == "svg" || format == "dot") {
    text = drawing(app, flags, format);
  } else {
    const Json document = report_document(app, flags);
    const std::string json = document.dump(-1, ' ', false, Json::error_handler_t::replace);
    text = format == "json" ? json + "\n" : report::page_with(json, "opfuse: " + flags.model);
  }
  if (flags.output.empty())
    fmt::print("{}", text);
  else
    write_text_file(flags.output, text), say("wrote " + flags.output);
  if (interrupted()) warn("interrupted: the numbers are those of the runs so far");
  return exit_code(kOk);
}

}  // namespace

std::function<int()> add_report(FlagSet& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("MODEL", flags->model, kModelOrOpfHelp)->required();
  app.add_option("OTHER", flags->other, "a second model or .opf, side by side with the first");
  app.add_option("-o,--output", flags->output, "file to write (default: stdout)")->type_name("FILE");
  app.add_option("--format", flags->format, "html: a page; json: its data; svg, dot: the graph (default: as -o ends)")
      ->one_of({"html", "json", "svg", "dot"});
  app.add_flag("--vs-unfused", flags->vs_unfused, "the same model without fusion, side by side");
  app.add_flag("--compare", flags->compare, "also prove the program and show the error of every group");
  app.add_flag("--no-measure", flags->no_measure, "run nothing: no times, no roofline, no timeline");
  app.add_flag("--no-code", flags->no_code, "leave out the text of the kernels");
  app.add_option("--view", flags->view, "svg, dot: the model's nodes in their groups, or the groups")
      ->one_of({"before", "after"})
      ->capture_default_str();
  app.add_option("--node", flags->node, "svg, dot: only what is near this node or tensor")->type_name("NAME");
  app.add_option("--radius", flags->radius, "with --node: how many edges away")
      ->range(0, 1 << 20)
      ->capture_default_str();
  app.add_option("--warmup,--warmUp", flags->warmup, "time of uncounted runs")->capture_default_str();
  app.add_option("--duration", flags->duration, "time of recorded runs")->capture_default_str();
  app.add_option("--timeline-parts", flags->timeline_parts,
                 "most parts drawn in the timeline; beyond that, a launch's parts on one worker are drawn as one")
      ->range(1, 1 << 30)
      ->capture_default_str();
  add_force_flag(app, flags->force);
  add_input_flags(app, flags->inputs);
  add_compile_flags(app, flags->compile);
  return [flags, &app] {
    take_plan(flags->inputs.dimensions, flags->compile.plan);
    return run(app, *flags);
  };
}

}  // namespace opfuse::cli
