// The MODEL argument: an .onnx, a text graph (.fir), `zoo:NAME`, or an .opf.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "opfuse/error.hpp"
#include "opfuse/runtime.hpp"

namespace opfuse::cli {

/// A model as given: a graph, or (for an .opf) an executable.
struct GivenModel {
  std::string name;  ///< for reports: the argument itself
  std::optional<Graph> graph;
  std::optional<Executable> executable;
  size_t file_bytes = 0;  ///< 0 for zoo models

  /// Inputs as graph values: an executable's inputs as a graph without nodes, so that inputs are made alike for both.
  const Graph& interface() const { return graph ? *graph : *interface_; }
  std::optional<Graph> interface_;
};

/// Which of the inputs that --input gives become constants of the model.
enum class Fix {
  shapes,  ///< those whose values decide shapes; the others are arrays of a run
  all,
};

/// What a verb knows of its model before it is read.
struct ModelOptions {
  std::vector<std::string> inputs{};  ///< arguments of --input
  Fix fix = Fix::shapes;
  std::vector<Diagnostic>* problems = nullptr;  ///< receives each problem of an .onnx by itself
  std::optional<Graph>* rest = nullptr;         ///< with them: what could be read beside them
  std::vector<std::string>* remarks = nullptr;  ///< receives what would be notes about declared shapes
};

/// Throws file_not_found, malformed_model, unknown_name ...
GivenModel open_model(const std::string& argument, const ModelOptions& options = {});

/// The same where only a graph makes sense (`verb` for the message): E::bad_option for an .opf.
GivenModel open_graph(const std::string& argument, const std::string& verb, const ModelOptions& options = {});

/// Help text of MODEL.
extern const char* const kModelHelp;
extern const char* const kModelOrOpfHelp;

}  // namespace opfuse::cli
