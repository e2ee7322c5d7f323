// Order: read, draw inputs, compile with the kernels' text, profile, trace, prove. Each later step may be left out, and
// the report then says so.
#include "report_subject.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/fail.hpp"
#include "base/temporary_folder.hpp"
#include "console.hpp"
#include "driver/remarks.hpp"
#include "facts.hpp"
#include "ir/located.hpp"
#include "measure_profile.hpp"
#include "report.hpp"
#include "run_sizes.hpp"

namespace opfuse::cli {
namespace {

/// "# kernel NAME" heads assembly, "// group     NAME ..." stands once per launch above CUDA text.
void read_texts(const std::string& folder, std::vector<report::KernelText>& texts) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::string text = read_text_file(entry.path().string());
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("# kernel ")) texts.push_back({line.substr(9), text});
      if (!line.starts_with("// group     ")) {
        if (!line.starts_with("//")) break;
        continue;
      }
      const std::string name = line.substr(13);
      texts.push_back({name.substr(0, name.find(' ')), text});
    }
  }
  std::sort(texts.begin(), texts.end(), [](const auto& a, const auto& b) { return a.symbol < b.symbol; });
}

/// The last stage once more, with the kernels' text.
Compiled built_again(Compilation& compilation, const EmitRequest& emit) {
  compilation.reached = Milestone::lowered;
  compilation.kernel_times.clear();
  compilation.options.artifact.emit_dir = emit.folder;
  compilation.options.artifact.emit_assembly = emit.assembly;
  compilation.options.artifact.emit_cuda = emit.cuda;
  compilation.run_to(Milestone::built);
  finish_progress();
  return Compiled(std::move(compilation));
}

void compile(HeldSubject& held, const SubjectRequest& request) {
  const TemporaryFolder folder;
  EmitRequest emit;
  const bool cuda = !parse_target(request.compile.target).traits.on_host;
  if (request.texts) {
    emit.folder = folder.path("kernels");
    emit.assembly = !cuda;
    emit.cuda = cuda;
    emit.text_only = cuda && !request.measure && !request.prove;
  }
  if (request.compiled)
    held.compiled = built_again(*request.compiled, emit);
  else
    held.compiled = request.unfused ? compile_unfused(*held.model.graph, held.inputs.symbols, request.compile, emit)
                                    : compile_fused(*held.model.graph, held.inputs.symbols, request.compile, emit);
  held.executable = held.compiled->executable;
  show_limits(*held.compiled);
  if (request.texts) read_texts(emit.folder, held.subject.texts);
}

report::Work work_of(const Graph& model, const Graph& fused, const SymbolValues& dims) {
  return {static_cast<double>(model.nodes().size()), graph_flops(model, dims), constant_bytes(model),
          activation_bytes(model, dims), activation_bytes(fused, dims)};
}

/// The program that runs at these sizes: of the whole model, or of the variant for them.
void find_program(HeldSubject& held) {
  report::Subject& s = held.subject;
  s.artifact = &held.executable->artifact();
  s.runs = &s.artifact->program_for(held.inputs.symbols);
  if (!held.compiled) return;
  s.compilation = &*held.compiled;
  s.graph = &held.compiled->fused, s.program = &held.compiled->program;
  for (size_t i = 0; i < s.artifact->variants.size(); ++i)
    if (s.runs == &s.artifact->variants[i])
      s.graph = held.compiled->variants[i].graph.get(), s.program = &held.compiled->variants[i].program;
}

void prove(HeldSubject& held, const SubjectRequest& request) {
  if (!held.compiled)
    throw fail(E::bad_option, "--compare does not apply: '{}' is an .opf, which has no graph to compare with",
               request.model)
        .hint("give the model it was compiled from");
  CompareOptions options;
  options.threads = request.compile.threads;
  options.progress = show_progress;
  options.seed = request.inputs.seed;
  report::Subject& s = held.subject;
  for (size_t i = 0; i < s.artifact->variants.size(); ++i)
    if (s.runs == &s.artifact->variants[i]) options.variant = static_cast<int>(i);
  const std::optional<ModelInputs> second = other_inputs(*held.model.graph, request.inputs, held.inputs);
  s.proof = compare_model(*held.model.graph, *s.graph, *s.program, *held.executable, held.inputs.tensors,
                          second ? second->tensors : std::vector<Tensor>{}, options);
  finish_progress();
}

std::unique_ptr<HeldSubject> opened(const FlagSet& app, const SubjectRequest& request, Fix fix) {
  auto held = std::make_unique<HeldSubject>();
  held->model = open_model(request.model, {.inputs = request.inputs.files, .fix = fix});
  if (held->model.executable) {
    refuse_compile_flags(app, request.model);
    held->executable = held->model.executable;
  }
  if (held->model.graph) name_sources(*held->model.graph);
  held->subject.name = request.unfused ? request.model + " (unfused)" : request.model;
  held->subject.seed = request.inputs.seed;
  return held;
}

}  // namespace

void name_sources(Graph& graph) {
  for (Node* node : graph.nodes())
    if (node->sources.empty()) node->sources = {{node->name(), source_operator(*node), "", 0}};
}

std::unique_ptr<HeldSubject> make_subject(const FlagSet& app, const SubjectRequest& request) {
  auto held = opened(app, request, Fix::shapes);
  report::Subject& s = held->subject;
  held->inputs = make_inputs(held->model.interface(), request.inputs);
  if (held->model.graph)
    compile(*held, request);
  else
    show_limits(*held->executable);
  find_program(*held);
  s.dims = sizes_of_run(*held->executable, held->inputs, request.compile.threads);
  if (s.compilation) {
    held->bound = held->model.graph->clone();
    held->bound->bind_dimensions(held->inputs.symbols);
    s.work = work_of(*held->bound, *s.graph, s.dims);
    s.views = report::views_of(*held->bound, *s.graph, s.compilation->plan, *s.runs);
    if (!request.unfused)
      s.remarks = remarks_on(*s.compilation, {.passed = false, .pattern_files = request.compile.plan.patterns});
  } else {
    s.views = report::views_of(*s.artifact, *s.runs);
  }
  if (s.texts.empty())
    s.no_texts =
        !s.compilation ? "an .opf has machine code only: give the model it was compiled from" : "left out (--no-code)";
  if (request.measure) {
    warn_emulated(*held->executable);
    s.profile = measure_profile(*held->executable, held->inputs, request.compile.threads,
                                {request.warmup_seconds, request.duration_seconds, 5});
    s.trace = trace_run(*held->executable, held->inputs, request.compile.threads);
  } else {
    s.not_measured = "left out (--no-measure)";
  }
  if (request.proof)
    s.proof = *request.proof;
  else if (request.prove)
    prove(*held, request);
  return held;
}

std::unique_ptr<HeldSubject> make_views(const FlagSet& app, const SubjectRequest& request) {
  auto held = opened(app, request, Fix::all);
  report::Subject& s = held->subject;
  if (held->executable) {
    s.views = report::views_of(held->executable->artifact(), held->executable->artifact());
    return held;
  }
  held->bound = held->model.graph->clone();
  const SymbolValues dims = given_dimensions(*held->bound, request.inputs.dimensions);
  held->bound->bind_dimensions(dims);
  CompilationOptions options = compilation_options(dims, request.compile);
  options.allow_reference = true;  // a drawing needs no kernels
  Compilation compilation(*held->model.graph, parse_target(request.compile.target), options);
  compilation.run_to(Milestone::shaped);
  s.views = report::views_of(*held->bound, compilation.fused, compilation.plan, held->no_launches);
  return held;
}

}  // namespace opfuse::cli
