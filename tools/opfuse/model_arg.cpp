// Which kind a model is follows from its name; what it contains is checked by its reader.
#include "model_arg.hpp"

#include <filesystem>

#include "base/fail.hpp"
#include "driver/interface.hpp"
#include "ir/fir_file.hpp"
#include "onnx/read.hpp"
#include "ops/registry.hpp"
#include "runtime/artifact.hpp"
#include "zoo/zoo.hpp"

namespace opfuse::cli {

const char* const kModelHelp = "an .onnx, a text graph (.fir), or zoo:NAME";
const char* const kModelOrOpfHelp =
    "an .onnx, a text graph (.fir), zoo:NAME, or an .opf (contains machine code: load only what you would run)";

namespace {

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

GivenModel open_model(const std::string& argument, std::vector<Diagnostic>* problems) {
  GivenModel model;
  model.name = argument;
  if (argument.rfind("zoo:", 0) == 0) {
    model.graph = build_zoo(argument.substr(4));
    return model;
  }
  std::error_code error;
  if (std::filesystem::is_directory(argument, error))
    throw fail(E::bad_file, "'{}' is a folder, not a model", argument).hint("name the .onnx file inside it");
  const auto bytes = std::filesystem::file_size(argument, error);
  if (error)
    throw fail(E::file_not_found, "there is no file '{}'", argument)
        .hint("a model is " + std::string(kModelHelp) + "; opfuse zoo lists the built-in ones");
  model.file_bytes = static_cast<size_t>(bytes);
  if (ends_with(argument, ".opf")) {
    model.executable = Executable::load(argument);
    model.interface_ = interface_of(model.executable->artifact());
  } else if (ends_with(argument, ".fir")) {
    model.graph = read_fir(argument, ops());
  } else {
    model.graph = read_onnx(argument, {.problems = problems});
  }
  return model;
}

GivenModel open_graph(const std::string& argument, const std::string& verb, std::vector<Diagnostic>* problems) {
  if (ends_with(argument, ".opf"))
    throw fail(E::bad_option, "opfuse {} needs a model, and an .opf holds only its machine code", verb)
        .hint("pass the .onnx that '" + argument + "' was compiled from");
  return open_model(argument, problems);
}

}  // namespace opfuse::cli
