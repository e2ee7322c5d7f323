// Arrays and dimensions for a model, from the command line.
//
//   --input x=x.npy (.npy, .npz, ONNX .pb), --input axes=[0,1]     --dim batch=8     --shape x:1x3x8x8 | x:[1,3,8,8] |
//   x[1,3,8,8]
//   --seed 0                                    --range ids=0..9  random inputs where no file is given
//
// Dimensions come from --dim and --shape, then from the arrays; a leading dimension that is still open is 1, with a
// warning; any other is an error that lists all of them with the flag to add.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "flag_set.hpp"
#include "ir/graph.hpp"

namespace opfuse::cli {

struct DimensionFlags {
  std::vector<std::string> dims;    ///< NAME=VALUE
  std::vector<std::string> shapes;  ///< INPUT:1x3x8x8
  std::string plan_file{};          ///< a plan has the sizes it was made with
};

struct InputFlags {
  DimensionFlags dimensions;
  std::vector<std::string> files;   ///< NAME=FILE, or FILE when it holds names
  std::vector<std::string> ranges;  ///< NAME=LO..HI
  uint64_t seed = 0;
};

/// "NAME=SIZE" in two. E::bad_option that names the flag and the form it should have.
std::pair<std::string, std::string> split_pair(const std::string& text, char separator, const std::string& flag,
                                               const std::string& form);
/// A whole number that is not negative. E::bad_option that names the argument it stands in.
int64_t parse_size(const std::string& text, const std::string& argument);

void add_dimension_flags(FlagSet& app, DimensionFlags& flags);
void add_input_flags(FlagSet& app, InputFlags& flags);
/// --input of verbs that run nothing: values of inputs that never change.
void add_fixed_input_flag(FlagSet& app, std::vector<std::string>& files);

/// Everything needed to run: one tensor per graph input, and the symbols' values.
struct ModelInputs {
  std::vector<Tensor> tensors;
  SymbolValues symbols;
};

using NamedTensors = std::map<std::string, Tensor>;

/// What a tensor may be called, and its type; unknown where any will do.
using NamedTypes = std::vector<std::pair<std::string, TensorType>>;

/// "NAME=FILE" (or FILE alone for formats that name their tensors), or "NAME=[1,2]" -> arrays. A lone .npy belongs to
/// the only one in `known`. E::unknown_name for a name that is not there.
NamedTensors read_arrays(const std::vector<std::string>& arguments, const NamedTypes& known, const std::string& flag);
NamedTypes types_of(const std::vector<Value*>& values);

/// Values of all symbols; `given` may be empty. Symbols whose --dim is "any" are left out.
SymbolValues resolve_dimensions(const Graph& interface, const DimensionFlags& flags, const NamedTensors& given = {});

/// What --dim, --shape and arrays say; the other symbols stay open.
SymbolValues known_dimensions(const Graph& interface, const InputFlags& flags);

/// Only what --dim and --shape say.
SymbolValues given_dimensions(const Graph& interface, const DimensionFlags& flags);

/// Given files, random values for the rest.
ModelInputs make_inputs(const Graph& interface, const InputFlags& flags);

/// Inputs of the same sizes from another seed (given files are kept); nullopt when files give every input.
std::optional<ModelInputs> other_inputs(const Graph& interface, InputFlags flags, const ModelInputs& first);

/// Names of a graph's inputs / outputs, in order.
std::vector<std::string> names_of(const std::vector<Value*>& values);

}  // namespace opfuse::cli
