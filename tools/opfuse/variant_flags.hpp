// --specialize NAME=SIZE[,NAME=SIZE]: variants for given sizes, and how reports list them.
#pragma once

#include <string>
#include <vector>

#include "compile_model.hpp"
#include "flag_set.hpp"
#include "inputs.hpp"
#include "report.hpp"
#include "runtime/artifact.hpp"

namespace opfuse::cli {

void add_variant_flag(FlagSet& app, std::vector<std::string>& specialize);

/// A variant per flag. E::bad_option for what has another form, E::unknown_name for a name that is not a dimension.
std::vector<SymbolValues> read_variants(const Graph& interface, const std::vector<std::string>& specialize);

/// What --specialize names stays open as if --dim NAME=any were there. E::bad_option when --dim gives it a size.
DimensionFlags leave_open(DimensionFlags flags, const std::vector<SymbolValues>& variants);

/// A row per variant: sizes, launches, kernels of its own, what it adds to the file.
Json variants_json(const Artifact& artifact);
/// The same with the time its own kernels took to compile.
Json variants_json(const Artifact& artifact, const std::vector<KernelTime>& times);
void print_variants(const Artifact& artifact);

/// {"axes": "[0,1]"}: inputs that were fixed, and to what.
Json fixed_inputs_json(const Artifact& artifact);
void print_fixed_inputs(const Artifact& artifact);

/// Says on stderr which variant runs, if the executable has any.
void note_variant(const Executable& executable, const Context& context);

}  // namespace opfuse::cli
