// opfuse targets: what code is generated for, with its numbers; files of one's own, checked; what a target lacks for a
// model; this machine, measured.
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "base/read_files.hpp"
#include "console.hpp"
#include "fusion/user/capability_rules.hpp"
#include "inputs.hpp"
#include "opfuse/runtime.hpp"
#include "outputs.hpp"
#include "profile/probe_machine.hpp"
#include "report.hpp"
#include "target/fields.hpp"
#include "target/missing_features.hpp"
#include "target/target_file.hpp"
#include "targets_advise.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

struct Flags {
  std::vector<std::string> words;
  std::string target = "host", output;
  DimensionFlags dimensions;
  int threads = 0;
  bool json = false;
};

std::string runs_here(const TargetInfo& target) {
  if (target.kind == "planning") return "plans only";
  if (!has_generator(target)) return "with its plug-in";
  if (!target.traits.on_host) return target.emulated ? "emulated" : "with a GPU";
  const std::vector<std::string> lacks = missing_features(target.features);
  return lacks.empty() ? "yes" : fmt::format("lacks {}", fmt::join(lacks, ", "));
}

/// {"core": {"fma_units": 2, ...}, ...}
Json json_of(const TargetInfo& target) {
  Json out = Json::object();
  TargetInfo copy = target;
  for (const TargetField& field : target_fields())
    if (field.allowed(target.kind))
      std::visit([&](auto in) { (*field.section ? out[field.section][field.key] : out[field.key]) = in(copy); },
                 field.access);
  if (!target.traits.on_host) return out;
  out["lacking_here"] = missing_features(target.features);
  return out;
}

int list(bool json) {
  const std::string host = host_target().name;
  if (json) {
    Json out = document("opfuse.targets/1");
    out["host"] = host;
    out["host_features"] = host_features();
    out["targets"] = Json::array();
    for (const std::string& name : listed_targets()) out["targets"].push_back(json_of(parse_target(name)));
    print_json(out);
    return kOk;
  }
  Table table({"target", "about", "here"});
  for (const std::string& name : listed_targets()) {
    const TargetInfo target = parse_target(name);
    table.row({name, target.about, runs_here(target) + (name == host ? ", and is what `host` means" : "")});
  }
  fmt::print("{}", table.text());
  fmt::print("this machine has {}\n", fmt::join(host_features(), ", "));
  fmt::print(
      "opfuse targets show NAME has the numbers; --target takes a file of one's own as well (docs/targets.md)\n");
  return kOk;
}

int show(const std::string& name, bool json) {
  const TargetInfo target = parse_target(name.empty() ? "host" : name);
  if (json) {
    Json out = document("opfuse.target/1");
    out.update(json_of(target));
    print_json(out);
    return kOk;
  }
  if (target.traits.on_host)
    fmt::print("# {} on this machine: caches are those that it reports, or that a file states.\n", target.name);
  fmt::print("{}{}", toml_of(target), toml_of(capabilities_of(target)));
  return kOk;
}

int check(const std::string& path, bool json) {
  TargetFile file = read_target_file(path);
  if (file.mistakes.empty())
    CapabilityRules(file.target, file.capabilities, &file.mistakes);  // conditions and topologies
  if (json) {
    Json out = document("opfuse.targets-check/1");
    out["mistakes"] = Json::array();
    for (const TargetMistake& m : file.mistakes)
      out["mistakes"].push_back(
          {{"file", m.file}, {"line", m.line}, {"column", m.column}, {"message", m.message}, {"hint", m.hint}});
    if (file.mistakes.empty()) out["target"] = json_of(file.target);
    print_json(out);
    return file.mistakes.empty() ? kOk : kCheckFailed;
  }
  for (const TargetMistake& m : file.mistakes) {
    fmt::print("{}:{}:{}: {}\n", m.file, m.line, m.column, m.message);
    if (!m.hint.empty()) fmt::print("  hint: {}\n", m.hint);
  }
  if (file.mistakes.empty()) fmt::print("{}: ok: {}, here: {}\n", path, file.target.name, runs_here(file.target));
  return file.mistakes.empty() ? kOk : kCheckFailed;
}

int probe(const Flags& flags) {
  const TargetInfo target = parse_target(flags.target);
  if (!target.traits.on_host)
    throw fail(E::bad_option, "targets probe measures this machine's processor, not {}", target.name);
  if (const std::vector<std::string> lacks = missing_features(target.features); !lacks.empty())
    throw fail(E::unsupported_cpu, "this machine cannot be measured as {}: it lacks {}", target.name,
               fmt::join(lacks, ", "));
  remember_read_file(flags.target);
  check_output("-o", flags.output);
  const int threads = flags.threads > 0 ? flags.threads : default_threads();
  size_t step = 0;
  const size_t steps = threads > 1 ? 5 : 4;
  const MachineProbe found =
      probe_machine(target, threads, [&](const char* what) { show_progress(what, step++, steps); });
  finish_progress();
  Json rows = Json::array();
  Table table({"field", ">" + target.name, ">measured"});
  for (const TargetField& field : target_fields()) {
    const std::string name = std::string(field.section) + "." + field.key;
    if (std::find(probed_fields().begin(), probed_fields().end(), name) == probed_fields().end()) continue;
    table.row({name, text_of(field, target), text_of(field, found.measured)});
    rows.push_back({{"field", name},
                    {"target", Json::parse(text_of(field, target))},
                    {"measured", Json::parse(text_of(field, found.measured))}});
  }
  if (!flags.output.empty()) write_text_file(flags.output, toml_of(found, target.name));
  if (flags.json) {
    Json out = document("opfuse.targets-probe/1");
    out.update({{"target", target.name},
                {"processor", processor_name()},
                {"clock_ghz", found.clock_hz / 1e9},
                {"threads", found.threads},
                {"fields", std::move(rows)}});
    print_json(out);
    return kOk;
  }
  fmt::print("{}   {:.2f} GHz   threads {}\n{}", processor_name(), found.clock_hz / 1e9, found.threads, table.text());
  if (!flags.output.empty()) fmt::print("wrote {}: --target {} compiles for it\n", flags.output, flags.output);
  return kOk;
}

int run(const FlagSet& app, const Flags& flags) {
  static const std::vector<std::string> kWhat{"list", "show", "probe", "check", "advise"};
  const std::string what = flags.words.empty() ? "list" : flags.words[0];
  const std::string argument = flags.words.size() > 1 ? flags.words[1] : "";
  if (std::find(kWhat.begin(), kWhat.end(), what) == kWhat.end())
    throw fail(E::unknown_name, "opfuse targets has no '{}'; it has list, show NAME, probe, check FILE, advise MODEL",
               what)
        .hint(did_you_mean(what, kWhat));
  const bool takes_one = what == "show" || what == "check" || what == "advise";
  if (flags.words.size() > (takes_one ? 2U : 1U))
    throw fail(E::bad_option, "targets {} takes {}, not '{}'", what, takes_one ? "one argument" : "no argument",
               flags.words[takes_one ? 2 : 1]);
  if (what != "probe") refuse_flags(app, {"-o", "--threads"}, "it goes with targets probe", "");
  if (what != "probe" && what != "advise")
    refuse_flags(app, {"--target"}, "it goes with targets probe and targets advise", "");
  if (what != "advise") refuse_flags(app, {"--dim"}, "it goes with targets advise", "");
  if (what == "list") return list(flags.json);
  if (what == "show") return show(argument, flags.json);
  if (what == "probe") return probe(flags);
  if (what == "advise") {
    if (argument.empty()) throw fail(E::bad_option, "targets advise needs a model: opfuse targets advise model.onnx");
    return advise_target(argument, flags.target, flags.dimensions, flags.json);
  }
  if (argument.empty()) throw fail(E::bad_option, "targets check needs a file: opfuse targets check mine.toml");
  return check(argument, flags.json);
}

}  // namespace

std::function<int()> add_targets(FlagSet& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("WHAT", flags->words, "list, show NAME, probe, check FILE, advise MODEL");
  app.add_option("--target", flags->target, "probe: what to compare with; advise: whose file to look through")
      ->capture_default_str();
  add_dimension_flags(app, flags->dimensions);
  app.add_option("--threads", flags->threads, "probe: of the measurement with all; 0: affinity mask and CPU quota")
      ->capture_default_str();
  app.add_option("-o,--output", flags->output, "probe: write a target's file with what was measured")
      ->type_name("FILE.toml");
  app.add_flag("--json", flags->json, "as JSON");
  return [flags, &app] { return run(app, *flags); };
}

}  // namespace opfuse::cli
