// Which kind a model is follows from its name; what it contains is checked by its reader.
#include "model_arg.hpp"

#include <filesystem>

#include "base/fail.hpp"
#include "base/mapped_file.hpp"
#include "inputs.hpp"
#include "ir/fir_file.hpp"
#include "ir/fix_input.hpp"
#include "limits_flag.hpp"
#include "link/interface.hpp"
#include "onnx/read.hpp"
#include "operator_flag.hpp"
#include "ops/registry.hpp"
#include "report.hpp"
#include "runtime/artifact.hpp"
#include "standard_input.hpp"
#include "zoo/zoo.hpp"

namespace opfuse::cli {

const char* const kModelHelp = "an .onnx, a text graph (.fir), zoo:NAME, or - for standard input";
const char* const kModelOrOpfHelp =
    "an .onnx, a text graph (.fir), zoo:NAME, an .opf (contains machine code: load only what you would run), or - for "
    "standard input";

namespace {

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

void note_remarks(const std::vector<std::string>& remarks) {
  constexpr size_t kShown = 3;
  for (size_t i = 0; i < std::min(kShown, remarks.size()); ++i) note(remarks[i]);
  if (remarks.size() > kShown)
    note(fmt::format("{} more shapes are declared wrongly; opfuse check lists them", remarks.size() - kShown));
}

Graph read_model(const std::string& path, const ModelOptions& with) {
  ReadOptions options;
  options.limits = given_limits();
  options.operators = given_operators();
  options.problems = with.problems, options.rest = with.rest;
  if (with.problems && options.limits.problems == Limits{}.problems) options.limits.problems = INT64_MAX;
  std::vector<std::string> remarks;
  options.remarks = with.remarks ? with.remarks : &remarks;
  const auto read = [&] {
    Graph graph = read_onnx(path, options);
    note_remarks(remarks);
    return graph;
  };
  if (with.inputs.empty()) return read();
  const std::vector<ModelInput> declared = onnx_inputs(path);
  NamedTypes known;
  for (const ModelInput& input : declared) known.emplace_back(input.name, input.type);
  options.fixed_inputs = read_arrays(with.inputs, known, "--input");
  for (const ModelInput& input : declared)
    if (with.fix == Fix::shapes && !input.decides_shapes) options.fixed_inputs.erase(input.name);
  for (const auto& [name, value] : options.fixed_inputs)
    note(fmt::format("input '{}' is fixed to {}", name, text_of_values(value)));
  return read();
}

/// By its name, or by how it begins where it has none: what stands on standard input.
bool is_opf(const std::string& argument) {
  if (!is_standard_input(argument)) return ends_with(argument, ".opf");
  return MappedFile::open(file_of_standard_input())->bytes().starts_with("OPFUSE");
}
bool is_fir(const std::string& argument) {
  if (!is_standard_input(argument)) return ends_with(argument, ".fir");
  constexpr size_t kComments = 4096;
  return MappedFile::open(file_of_standard_input())->bytes().substr(0, kComments).find("graph @") != std::string::npos;
}

/// A graph that names no operands which decide shapes: inputs are fixed where all are.
void fix_given(Graph& graph, const ModelOptions& options) {
  if (options.fix != Fix::all || options.inputs.empty()) return;
  for (const auto& [name, value] : read_arrays(options.inputs, cli::types_of(graph.inputs()), "--input")) {
    note(fmt::format("input '{}' is fixed to {}", name, text_of_values(value)));
    fix_input(graph, name, value);
  }
  graph.infer_types();
}

}  // namespace

static GivenModel read_given(const std::string& argument, const ModelOptions& options) {
  given_limits();  // their names are checked whatever the model is
  GivenModel model;
  model.name = argument;
  if (argument.rfind("zoo:", 0) == 0) {
    model.graph = build_zoo(argument.substr(4));
    fix_given(*model.graph, options);
    return model;
  }
  const std::string& path = path_of(argument);
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    throw fail(E::bad_file, "'{}' is a folder, not a model", argument).hint("name the .onnx file inside it");
  const bool other = std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error);
  if (other)  // read twice, and mapped: a pipe gives its bytes once
    throw fail(E::bad_file, "'{}' is a pipe or device, not a regular file", argument)
        .hint("standard input is read as -: opfuse VERB - < FILE");
  const auto bytes = std::filesystem::file_size(path, error);
  if (error)
    throw fail(E::file_not_found, "there is no file '{}'", argument)
        .hint("a model is " + std::string(kModelHelp) + "; opfuse zoo lists the built-in ones");
  model.file_bytes = static_cast<size_t>(bytes);
  if (is_opf(argument)) {
    model.executable = Executable::load(path);
    model.interface_ = interface_of(model.executable->artifact());
  } else if (is_fir(argument)) {
    model.graph = read_fir(path, ops());
    fix_given(*model.graph, options);
  } else {
    model.graph = read_model(path, options);
  }
  return model;
}

GivenModel open_model(const std::string& argument, const ModelOptions& options) {
  try {
    return read_given(argument, options);
  } catch (const Error& error) {
    if (!is_standard_input(argument) || error.diagnostic().file.empty()) throw;
    Diagnostic known = error.diagnostic();
    known.file = "standard input";
    throw Error(known);
  }
}

GivenModel open_graph(const std::string& argument, const std::string& verb, const ModelOptions& options) {
  if (argument.rfind("zoo:", 0) != 0 && is_opf(argument))
    throw fail(E::bad_option, "opfuse {} needs a model, and an .opf holds only its machine code", verb)
        .hint("pass the .onnx that '" + argument + "' was compiled from");
  return open_model(argument, options);
}

}  // namespace opfuse::cli
