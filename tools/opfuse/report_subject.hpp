// A model on its way into a report: compiled, measured, proven, with the text of its kernels.
#pragma once

#include <memory>

#include "compile_model.hpp"
#include "model_arg.hpp"
#include "report/subject.hpp"

namespace opfuse::cli {

struct SubjectRequest {
  std::string model;
  InputFlags inputs;
  CompileFlags compile;
  bool unfused = false;  ///< the same model, a launch per operator
  bool measure = true, texts = true, prove = false;
  double warmup_seconds = 0.2, duration_seconds = 1;
  Compilation* compiled =
      nullptr;  ///< of this model, which is taken instead of compiling it; its artifact is made again
  const Comparison* proof = nullptr;  ///< of the same program
};

/// Everything that the subject points to.
struct HeldSubject {
  GivenModel model;
  ModelInputs inputs;
  std::optional<Graph> bound;  ///< the model at the given sizes
  std::optional<Compiled> compiled;
  std::optional<Executable> executable;
  ArtifactProgram no_launches;
  report::Subject subject;
};

/// Nodes of a text graph may have no source; groups and launches then could not say what they came from.
void name_sources(Graph& graph);

/// `app`: for flags that do not go with an .opf.
std::unique_ptr<HeldSubject> make_subject(const FlagSet& app, const SubjectRequest& request);

/// The graphs alone: nothing is generated or run. Dimensions may stay open.
std::unique_ptr<HeldSubject> make_views(const FlagSet& app, const SubjectRequest& request);

}  // namespace opfuse::cli
