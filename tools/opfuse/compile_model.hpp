// Model -> plan -> program -> executable, with the flags that all compiling verbs share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driver/compilation.hpp"
#include "flag_set.hpp"
#include "inputs.hpp"
#include "opfuse/runtime.hpp"

namespace opfuse::cli {

struct PlanFlags {
  std::vector<std::string> only, skip;  ///< PATTERN or PATTERN@NODE
  std::string plan_file;
  bool allow_stale = false;
  bool no_rules = false;
  std::vector<std::string> patterns;   ///< files
  std::vector<std::string> precision;  ///< "bf16", "tf32", "f32@NODE"
  size_t max_group_nodes = PlanRequest{}.max_group_nodes;
  std::vector<std::pair<std::string, std::string>> no_fuse, fuse;  ///< names of nodes
  std::vector<std::string> place;                                  ///< "NODE=DEVICE"
  bool fallback = false;
};

/// Shaping passes that are switched off.
struct PassFlags {
  std::vector<std::string> no_pass;
  bool no_chains = false;
  std::vector<std::string> off() const;  ///< with what --no-chains stands for
};

struct AlgorithmFlags {
  bool exact = false, measure = false;
  std::string memory = "fast";               ///< or "least"
  std::vector<std::string> only, skip;       ///< NAME or NAME@NODE
  std::vector<std::string> timings;          ///< files, with --measure
  std::string max_weight_growth, workspace;  ///< "45MB"; empty: no bound given
};

struct CompileFlags {
  std::string target = "host";
  int threads = 0;          ///< of the run
  int compile_threads = 0;  ///< of the compiler; 0: all available
  std::string dump_dir;
  bool no_cache = false;
  bool allow_reference = false;
  PassFlags passes;
  AlgorithmFlags algorithms;
  PlanFlags plan;
};

void add_target_flag(FlagSet& app, std::string& target);
/// "example-npu,cpu": the last one is the target, those before it become accelerators of the compilation.
TargetInfo take_target(const std::string& names, CompilationOptions& options);
void add_reproducer_flag(FlagSet& app);  ///< of verbs that run passes
void add_plan_flags(FlagSet& app, PlanFlags& flags);
/// The sizes that a plan was made with are given by it, unless it may be stale.
void take_plan(DimensionFlags& dimensions, const PlanFlags& plan);
void add_pass_flags(FlagSet& app, PassFlags& flags);
void add_algorithm_flags(FlagSet& app, AlgorithmFlags& flags);
AlgorithmRequest algorithm_request(const AlgorithmFlags& flags, int threads);
void add_compile_flags(FlagSet& app, CompileFlags& flags);  ///< all of them

/// For verbs that also take an .opf: E::bad_option for a flag that only a compilation reads.
void refuse_compile_flags(const FlagSet& app, const std::string& opf);
/// Of these, those of reading a model: what `inspect` has too.
void refuse_reading_flags(const FlagSet& app, const std::string& opf);
/// For --reference, which compiles nothing.
void refuse_compile_flags_of_reference(const FlagSet& app);
/// For verbs that ignore the plan (--unfused).
void refuse_plan_flags(const FlagSet& app, const std::string& why);
/// For verbs that run: no more threads than this process may use processors, with a note. Only compiling for another
/// machine may name any number.
void bound_threads(CompileFlags& flags);

/// The program of a compilation that is taken to Milestone::lowered; null, with a note that ends in `without`, where
/// the model does not compile: its plan stands without one.
const Program* lower_or_note(Compilation& compilation, const std::string& without);

/// Prints the program's notes (splits, limits that bound, reference launches) on stderr: nothing is silent.
void show_limits(const Compilation& compilation);
void show_limits(const Executable& loaded);  ///< the same notes, from an .opf
/// Says on stderr that times are the host's where the device is emulated.
void warn_emulated(const Executable& executable);

struct EmitRequest {
  std::string folder;
  bool llvm = false, assembly = false, cuda = false;
  bool text_only = false;  ///< nothing but the kernels' text is wanted
};

/// The flags as options of a compilation.
CompilationOptions compilation_options(const SymbolValues& dims, const PlanFlags& flags);
CompilationOptions compilation_options(const SymbolValues& dims, const CompileFlags& flags);

/// A compilation that was run to its end, and what runs it.
struct Compiled : Compilation {
  explicit Compiled(Compilation compilation);
  Executable executable;
};

/// `specialize`: sizes of open dimensions to compile once more for.
Compiled compile_fused(const Graph& model, const SymbolValues& dims, const CompileFlags& flags,
                       const EmitRequest& emit = {}, const std::vector<SymbolValues>& specialize = {});
/// The same compiler without fusion: one launch per operator of the model as it was read.
Compiled compile_unfused(const Graph& model, const SymbolValues& dims, const CompileFlags& flags,
                         const EmitRequest& emit = {}, const std::vector<SymbolValues>& specialize = {});

}  // namespace opfuse::cli
