// opfuse compile: a model to an .opf.
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/fail.hpp"
#include "compile_model.hpp"
#include "console.hpp"
#include "inputs.hpp"
#include "model_arg.hpp"
#include "object/standalone.hpp"
#include "outputs.hpp"
#include "report.hpp"
#include "runtime/artifact.hpp"
#include "talk.hpp"
#include "target/target.hpp"
#include "variant_flags.hpp"
#include "verb.hpp"
#include "words.hpp"

namespace opfuse::cli {
namespace {

struct Flags {
  std::string model, output;
  DimensionFlags dimensions;
  CompileFlags compile;
  std::vector<std::string> emit, specialize, fixed;
  bool unfused = false, kernel_times = false, json = false, force = false;
};

/// What --emit asks for: the text of kernels, a standalone object, or both, in one folder.
struct Emitted : EmitRequest {
  std::string object_folder;  ///< empty: no object
  bool texts() const { return llvm || assembly || cuda; }
};

Emitted emit_request(const std::vector<std::string>& words) {
  Emitted emit;
  if (words.empty()) return emit;
  emit.folder = words[1];
  std::stringstream kinds(words[0]);
  for (std::string kind; std::getline(kinds, kind, ',');) {
    if (kind == "llvm")
      emit.llvm = true;
    else if (kind == "asm")
      emit.assembly = true;
    else if (kind == "cuda")
      emit.cuda = true;
    else if (kind == "object")
      emit.object_folder = words[1];
    else
      throw fail(E::bad_option, "--emit {}: unknown kind '{}'", words[0], kind)
          .hint("write --emit llvm,asm DIR, --emit object DIR, or --emit cuda DIR for cuda targets");
  }
  if (!emit.texts()) emit.folder.clear();
  return emit;
}

Json rows_of(const std::vector<KernelTime>& times) {
  Json rows = Json::array();
  for (const KernelTime& t : times)
    rows.push_back(
        {{"name", t.name}, {"kernel", t.symbol}, {"ms", t.ms}, {"cached", t.cached}, {"variant", t.variant}});
  return rows;
}

/// How many kernels were compiled and how long that would take one thread; with `each`, a row per kernel.
void print_kernel_times(std::vector<KernelTime> times, bool each) {
  if (times.empty()) return;
  std::stable_sort(times.begin(), times.end(), [](const KernelTime& a, const KernelTime& b) { return a.ms > b.ms; });
  double total = 0;
  for (const KernelTime& t : times) total += t.ms;
  const auto cached = std::count_if(times.begin(), times.end(), [](const KernelTime& t) { return t.cached; });
  const auto fresh = static_cast<std::ptrdiff_t>(times.size()) - cached;
  std::string text = fmt::format("  {} compiled", counted(static_cast<size_t>(fresh), "kernel"));
  if (fresh > 0)
    text += fmt::format(" in {:.2f} s of one thread, {} ms each, slowest {} in {} ms", total * 1e-3,
                        milliseconds(total / static_cast<double>(fresh)), times[0].name, milliseconds(times[0].ms));
  if (cached > 0) text += fmt::format("{} {} from the cache", fresh > 0 ? ";" : ",", cached);
  fmt::print("{}\n", text);
  if (!each) return;
  Table table({">ms", "symbol", "first launch"});
  for (const KernelTime& t : times) table.row({t.cached ? "cached" : milliseconds(t.ms), t.symbol, t.name});
  fmt::print("{}", table.text());
}

/// What goes with what, before anything is read.
Emitted checked_request(const FlagSet& app, const Flags& flags) {
  Emitted emit = emit_request(flags.emit);
  if (flags.output.empty() && flags.emit.empty())
    throw fail(E::bad_option, "nothing to write").hint("add -o NAME.opf, --emit object DIR or --emit llvm,asm DIR");
  CompilationOptions beside;
  const bool cuda = !take_target(flags.compile.target, beside).traits.on_host;
  if (!emit.object_folder.empty() && !beside.accelerators.empty())
    throw fail(E::bad_option, "--emit object does not go with --target {}: an object has code of the CPU alone",
               flags.compile.target)
        .hint("-o NAME.opf has a section for each device");
  if (!emit.folder.empty() && cuda != emit.cuda)
    throw fail(E::bad_option, "--emit {} does not go with --target {}", flags.emit[0], flags.compile.target)
        .hint("llvm and asm are the CPU's, cuda is that of cuda:sm_XX");
  if (cuda && !emit.object_folder.empty())
    throw fail(E::bad_option, "--emit object does not go with --target {}: it has code of the CPU",
               flags.compile.target);
  emit.text_only = cuda && flags.output.empty();
  check_companions(app, {{"--allow-stale", "--plan"}});
  if (flags.unfused) refuse_plan_flags(app, "--unfused has the empty plan");
  if (flags.unfused && !emit.folder.empty())
    throw fail(E::bad_option, "--emit does not apply: it writes the kernels of the fused program, not of --unfused");
  return emit;
}

size_t kernel_count(const Artifact& a) {
  std::set<std::string> kernels;
  for (const ArtifactLaunch& launch : a.launches) kernels.insert(launch.symbol);
  return kernels.size();
}

void print_compiled_json(const Flags& flags, const Compiled& compiled, const SymbolValues& dims, double seconds) {
  const Artifact& a = compiled.executable.artifact();
  Json out = document("opfuse.compile/1");
  out.update({{"model", flags.model},
              {"output", flags.output},
              {"target", a.target},
              {"dims", json_of(dims)},
              {"dynamic_dims", a.symbols},
              {"fixed_inputs", fixed_inputs_json(a)},
              {"launches", a.launches.size()},
              {"kernels", kernel_count(a)},
              {"code_bytes", a.code.size()},
              {"constant_bytes", a.constants.size()},
              {"arena_bytes", a.arena_bytes.text()},
              {"variants", variants_json(a, compiled.kernel_times)},
              {"seconds", seconds},
              {"kernel_times", rows_of(compiled.kernel_times)},
              {"conversions", compiled.notes()},
              {"notes", a.notes}});
  print_json(out);
}

void print_compiled(const Flags& flags, const Compiled& compiled, bool text_only, double seconds) {
  const Artifact& a = compiled.executable.artifact();
  fmt::print("{}   {} of {}   target {}{}   {:.2f} s\n", flags.model,
             a.launches.size() == 1 ? "1 launch" : fmt::format("{} launches", a.launches.size()),
             counted(kernel_count(a), "kernel"), a.target,
             a.cpu_features.empty() ? "" : fmt::format(" (needs {})", fmt::join(a.cpu_features, ", ")), seconds);
  fmt::print("  code {}, packed constants {}, arena {}{}\n", human_bytes(static_cast<double>(a.code.size())),
             human_bytes(static_cast<double>(a.constants.size())),
             a.arena_bytes.is_constant() ? human_bytes(static_cast<double>(a.arena_bytes.value()))
                                         : a.arena_bytes.text() + " bytes",
             a.symbols.empty() ? "" : fmt::format(", open dimensions: {}", fmt::join(a.symbols, ", ")));
  print_fixed_inputs(a);
  print_variants(a);
  if (!text_only) print_kernel_times(compiled.kernel_times, flags.kernel_times);
  for (const std::string& text : grouped_notes(compiled.notes())) fmt::print("  {}\n", text);
  for (const std::string& text : grouped_notes(a.notes)) fmt::print("  note: {}\n", text);
}

/// NAME.o and NAME.h, with the name of the model's file.
void write_object(const Artifact& artifact, const std::string& model, const std::string& folder) {
  const std::string name = c_name_of(model.starts_with("zoo:") ? model.substr(4) : model);
  const StandaloneModel standalone = standalone_model(artifact, name);
  std::error_code error;  // what cannot be written says so below
  std::filesystem::create_directories(folder, error);
  const std::string path = (std::filesystem::path(folder) / name).string();
  write_text_file(path + ".o", standalone.object);
  write_text_file(path + ".h", standalone.header);
  say(fmt::format("wrote {0}.o and {0}.h (include the header, link the object; no library is needed)", path));
}

int run(const FlagSet& app, const Flags& flags) {
  const Emitted emit = checked_request(app, flags);
  const int64_t start = now_ns();
  const GivenModel model = open_graph(flags.model, "compile", {.inputs = flags.fixed, .fix = Fix::all});
  check_output("-o", flags.output, {".opf"}, flags.force);
  const std::vector<SymbolValues> variants = read_variants(*model.graph, flags.specialize);
  const SymbolValues dims = resolve_dimensions(*model.graph, leave_open(flags.dimensions, variants));
  const Compiled compiled = flags.unfused ? compile_unfused(*model.graph, dims, flags.compile, emit, variants)
                                          : compile_fused(*model.graph, dims, flags.compile, emit, variants);
  if (!flags.output.empty()) compiled.executable.save(flags.output);
  const double seconds = static_cast<double>(now_ns() - start) * 1e-9;
  if (flags.json)
    print_compiled_json(flags, compiled, dims, seconds);
  else
    print_compiled(flags, compiled, emit.text_only, seconds);
  if (!flags.output.empty())
    say(fmt::format("wrote {} (contains machine code; next: opfuse run {})", flags.output, flags.output));
  if (!emit.folder.empty()) say(fmt::format("wrote the kernels' text to {}", emit.folder));
  if (!emit.object_folder.empty()) write_object(compiled.executable.artifact(), flags.model, emit.object_folder);
  return kOk;
}

}  // namespace

std::function<int()> add_compile(FlagSet& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("MODEL", flags->model, kModelHelp)->required();
  app.add_option("-o,--output,--saveEngine", flags->output,
                 "the .opf; it contains machine code: load only what you would run")
      ->type_name("FILE");
  add_force_flag(app, flags->force);
  app.add_option("--emit", flags->emit,
                 "llvm, asm: one readable file per kernel; cuda: the same for cuda targets; object: the model as "
                 "NAME.o and a C "
                 "header NAME.h, which need no library")
      ->expected(2)
      ->type_name("KINDS DIR");
  app.add_flag("--unfused", flags->unfused, "the empty plan: one kernel per node");
  add_dimension_flags(app, flags->dimensions);
  add_variant_flag(app, flags->specialize);
  add_fixed_input_flag(app, flags->fixed);
  app.get_option("--dim")->description("size of a symbolic dimension; 'any' leaves it open in the .opf");
  add_compile_flags(app, flags->compile);
  app.add_flag("--kernel-times", flags->kernel_times, "a row per kernel: how long it took to compile");
  app.add_flag("--json", flags->json, "as JSON");
  return [flags, &app] {
    take_plan(flags->dimensions, flags->compile.plan);
    return run(app, *flags);
  };
}

}  // namespace opfuse::cli
