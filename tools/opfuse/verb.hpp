// A verb of the command line: one file each, listed in verbs.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "flag_set.hpp"
#include "opfuse/error.hpp"

namespace opfuse::cli {

// Exit codes. 0 ok; 1 a check failed; the rest by what went wrong.
inline constexpr int kOk = 0, kCheckFailed = 1, kUsage = 2, kBadModel = 3, kRuntime = 4, kFiles = 5, kInternal = 70,
                     kInterrupted = 130;

int exit_code_of(const Diagnostic& diagnostic);

/// Adds the verb's options to `app` and returns what runs it (returns the exit code).
using AddVerb = std::function<int()> (*)(FlagSet& app);

struct Verb {
  const char* name;
  const char* summary;
  AddVerb add;
};

const std::vector<Verb>& verbs();

#define OPFUSE_VERBS(X)                                                                              \
  X(demo, "the main job on built-in models: fuse, compile, prove equal, measure")                    \
  X(inspect, "inputs, outputs, operators, weights, FLOP and bytes of a model; kernels of an .opf")   \
  X(fuse, "plan and apply fusion, write ONNX, report per pattern")                                   \
  X(explain, "why each node is, or is not, fused")                                                   \
  X(diff, "fusions lost and gained between two models, plans or versions of them")                   \
  X(quantize, "place Q/DQ pairs, calibrate, write int8 ONNX, show where accuracy goes")              \
  X(check, "every problem that keeps a model from being compiled, and what would help")              \
  X(optimize, "the fastest program for a model: tried, proven, measured against no fusion")          \
  X(tune, "schedules of a model's kernels, measured on this machine and kept")                       \
  X(compile, "compile a model to an .opf")                                                           \
  X(run, "run a model or an .opf on given or random inputs")                                         \
  X(compare, "fused and compiled against the interpreter, group by group; or against another model") \
  X(bench, "latency, throughput and share of the measured FMA limit")                                \
  X(profile, "time, bytes and FLOP per kernel")                                                      \
  X(report, "one HTML page: graph, launches, what is not fused, roofline, timeline, memory")         \
  X(reduce, "the smallest part of a model for which a command still fails")                          \
  X(zoo, "list or write the built-in models")                                                        \
  X(ops, "the operators opfuse knows")                                                               \
  X(patterns, "the fusion patterns")                                                                 \
  X(passes, "the graph passes")                                                                      \
  X(targets, "instruction sets and GPUs, with their numbers; this machine's, measured")              \
  X(options, "every option of every verb")                                                           \
  X(errors, "every error code")                                                                      \
  X(reasons, "why two neighbours are not one launch: every code of the ledger")                      \
  X(doctor, "this machine, libraries, caches: for bug reports")

#define OPFUSE_DECLARE_VERB(name, summary) std::function<int()> add_##name(FlagSet& app);
OPFUSE_VERBS(OPFUSE_DECLARE_VERB)
#undef OPFUSE_DECLARE_VERB

}  // namespace opfuse::cli
