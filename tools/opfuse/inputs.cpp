// --dim, --shape, --input, --range -> tensors for every input of a model.
#include "inputs.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>
#include <sstream>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "console.hpp"
#include "fusion/plan.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "ir/fix_input.hpp"
#include "onnx/tensor_files.hpp"
#include "plan_file.hpp"
#include "report.hpp"
#include "tensor/dim_flag.hpp"

namespace opfuse::cli {
std::pair<std::string, std::string> split_pair(const std::string& text, char separator, const std::string& flag,
                                               const std::string& form) {
  const size_t at = text.find(separator);
  if (at == std::string::npos || at == 0 || at + 1 == text.size())
    throw fail(E::bad_option, "{} {} does not have the form {}", flag, text, form);
  return {text.substr(0, at), text.substr(at + 1)};
}

int64_t parse_size(const std::string& text, const std::string& argument) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    throw fail(E::bad_option, "'{}' in '{}' is not a size", text, argument)
        .hint("sizes are whole numbers, e.g. batch=8");
  return value;
}

namespace {

constexpr const char* kAny = "any";

const Value& input_named(const Graph& interface, const std::string& name, const std::string& flag) {
  for (const Value* input : interface.inputs())
    if (input->name == name) return *input;
  const std::vector<std::string> names = names_of(interface.inputs());
  throw fail(E::unknown_name, "{}: the model has no input '{}'", flag, name)
      .hint(fmt::format("{}; inputs: {}", did_you_mean(name, names), fmt::join(names, ", ")));
}

/// "x:1x3x8x8", "x:[1,3,8,8]", "x[1,3,8,8]"; "?" leaves a dimension as it is.
void read_shape_flag(const Graph& interface, const std::string& argument, SymbolValues& symbols) {
  const size_t colon = argument.rfind(':');
  const size_t at = colon != std::string::npos ? colon : argument.find('[');
  if (at == std::string::npos || at == 0)
    throw fail(E::bad_option, "--shape {} does not name an input", argument).hint("write --shape x:1x3x224x224");
  const Value& input = input_named(interface, argument.substr(0, at), "--shape");
  std::vector<std::string> sizes(1);
  for (char c : argument.substr(at + 1)) {
    if (c == 'x' || c == ',')
      sizes.emplace_back();
    else if (c != '[' && c != ']' && c != ' ')
      sizes.back() += c;
  }
  const Shape& shape = input.type.shape;
  if (sizes.size() != shape.rank())
    throw fail(E::bad_option, "--shape {} has {} sizes, but '{}' is {}", argument, sizes.size(), input.name,
               input.type.text());
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == "?") continue;
    const int64_t size = parse_size(sizes[i], argument);
    if (shape[i].op() == DimOp::symbol) {
      const auto [at, fresh] = symbols.emplace(shape[i].symbol_name(), size);
      if (!fresh && at->second != size)
        throw fail(E::bad_option, "--shape {}: dimension {} is {} and {}", argument, at->first, at->second, size)
            .hint(fmt::format("in the model they are one dimension, as in {}", input.type.text()));
    } else if (shape[i].is_constant() && shape[i].value() != size) {
      throw fail(E::bad_option, "--shape {}: dimension {} of '{}' is fixed to {}", argument, i, input.name,
                 shape[i].value());
    }
  }
}

struct Wanted {
  SymbolValues values;
  std::set<std::string> open;  ///< --dim NAME=any
};

Wanted read_dimension_flags(const Graph& interface, const DimensionFlags& flags) {
  Wanted wanted;
  const std::set<std::string> known = interface.symbols();
  for (const std::string& argument : flags.dims) {
    const auto [name, size] = split_pair(argument, '=', "--dim", "NAME=VALUE");
    if (!known.contains(name)) {
      const std::vector<std::string> names(known.begin(), known.end());
      throw fail(E::unknown_name, "--dim {}: the model has no dimension '{}'", argument, name)
          .hint(names.empty() ? "all dimensions of its inputs are fixed"
                              : fmt::format("dimensions: {}", fmt::join(names, ", ")));
    }
    if (size == kAny)
      wanted.open.insert(name);
    else if (const auto [at, fresh] = wanted.values.emplace(name, parse_size(size, argument));
             at->second != parse_size(size, argument))
      throw fail(E::bad_option, "--dim {}: {} is {} already", argument, name, at->second);
  }
  for (const std::string& argument : flags.shapes) read_shape_flag(interface, argument, wanted.values);
  for (const std::string& name : wanted.open)
    if (const auto at = wanted.values.find(name); at != wanted.values.end())
      throw fail(E::bad_option, "--dim {}=any leaves open what is {} by another flag", name, at->second);
  if (flags.plan_file.empty()) return wanted;
  for (const auto& [name, size] : read_plan(flags.plan_file).dims) {
    if (wanted.open.contains(name))
      throw fail(E::stale_plan, "the plan was made for {0} = {1}, and {0} is to stay open", name, size)
          .hint("make a plan without that size: fuse MODEL --plan-out FILE");
    const auto [at, fresh] = wanted.values.emplace(name, size);
    if (at->second != size)
      throw fail(E::stale_plan, "the plan was made for {} = {}, not for {}", name, size, at->second)
          .hint("make a plan with this size, or without: sizes that it leaves open may be given with --plan");
  }
  return wanted;
}

/// Bare symbols of the inputs that have arrays; what does not fit is found later, by bind_symbols.
void take_from_arrays(const Graph& interface, const NamedTensors& given, SymbolValues& symbols) {
  for (const Value* input : interface.inputs()) {
    const auto array = given.find(input->name);
    if (array == given.end()) continue;
    const Shape& shape = input->type.shape;
    for (size_t i = 0; i < shape.rank() && i < array->second.rank(); ++i)
      if (shape[i].op() == DimOp::symbol) symbols.emplace(shape[i].symbol_name(), array->second.dim(i));
  }
}

/// Leading dimensions of inputs that nothing fixes become 1.
void default_batch(const Graph& interface, const std::set<std::string>& open, SymbolValues& symbols) {
  for (const Value* input : interface.inputs()) {
    const Shape& shape = input->type.shape;
    if (shape.rank() == 0 || shape[0].op() != DimOp::symbol) continue;
    const std::string& name = shape[0].symbol_name();
    if (open.contains(name) || !symbols.emplace(name, 1).second) continue;
    warn(fmt::format("dimension '{}' of input '{}' is not given: 1 ({} for another)", name, input->name,
                     dim_flag(name)));
  }
}

[[noreturn]] void refuse_open(const Graph& interface, const std::vector<std::string>& open) {
  std::vector<std::string> flags;
  for (const std::string& name : open) flags.push_back(dim_flag(name));
  Error error = fail(E::missing_dimension, "no value for {}", fmt::join(open, ", "));
  error.hint(fmt::format("add {}, or give arrays with --input", fmt::join(flags, " ")));
  for (const Value* input : interface.inputs()) error.operand(fmt::format("{} : {}", input->name, input->type.text()));
  throw error;
}

std::map<std::string, std::pair<double, double>> read_ranges(const std::vector<std::string>& arguments) {
  std::map<std::string, std::pair<double, double>> ranges;
  for (const std::string& argument : arguments) {
    const auto [name, range] = split_pair(argument, '=', "--range", "NAME=LO..HI");
    const size_t dots = range.find("..");
    try {
      if (dots == std::string::npos) throw std::invalid_argument("no dots");
      size_t used_low = 0, used_high = 0;
      const std::string low = range.substr(0, dots), high = range.substr(dots + 2);
      ranges[name] = {std::stod(low, &used_low), std::stod(high, &used_high)};
      if (used_low != low.size() || used_high != high.size()) throw std::invalid_argument("rest");
    } catch (const std::logic_error&) {
      throw fail(E::bad_option, "--range {} does not have the form NAME=LO..HI", argument)
          .hint("e.g. --range ids=0..99");
    }
  }
  return ranges;
}

}  // namespace

std::vector<std::string> names_of(const std::vector<Value*>& values) {
  std::vector<std::string> names;
  for (const Value* value : values) names.push_back(value->name);
  return names;
}

void add_dimension_flags(FlagSet& app, DimensionFlags& flags) {
  app.add_option("--dim", flags.dims, "size of a symbolic dimension")->type_name("NAME=VALUE")->allow_extra_args(false);
  app.add_option("--shape,--shapes,--input-shapes,--optShapes", flags.shapes,
                 "sizes of an input: x:1x3x8x8, x:[1,3,8,8] or x[1,3,8,8]; ? keeps one")
      ->type_name("INPUT:SIZES")
      ->allow_extra_args(false);
}

void add_input_flags(FlagSet& app, InputFlags& flags) {
  add_dimension_flags(app, flags.dimensions);
  app.add_option("--input,--loadInputs,--load-inputs", flags.files,
                 "array for an input: .npy, .npz or ONNX .pb, or its values: axes=[0,1]")
      ->type_name("NAME=FILE|VALUES")
      ->allow_extra_args(false);
  app.add_option("--range", flags.ranges, "range of a random input")->type_name("NAME=LO..HI")->allow_extra_args(false);
  app.add_option("--seed", flags.seed, "of the random inputs")->capture_default_str();
}

void add_fixed_input_flag(FlagSet& app, std::vector<std::string>& files) {
  app.add_option("--input", files, "value of an input that never changes, such as axes or sizes: a file, or [1,2]")
      ->type_name("NAME=FILE|VALUES")
      ->allow_extra_args(false);
}

NamedTypes types_of(const std::vector<Value*>& values) {
  NamedTypes types;
  for (const Value* value : values) types.emplace_back(value->name, value->type);
  return types;
}

namespace {

/// The numbers of "[1,2]", "1,2" or "3"; nothing where it is something else.
std::optional<std::vector<double>> read_numbers(std::string text) {
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  std::vector<double> numbers;
  std::stringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    size_t used = 0;
    try {
      numbers.push_back(item == "true" ? 1 : item == "false" ? 0 : std::stod(item, &used));
    } catch (const std::logic_error&) {
      return std::nullopt;
    }
    if (item != "true" && item != "false" && item.find_first_not_of(' ', used) != std::string::npos)
      return std::nullopt;
  }
  return numbers;
}

/// Inline values as the tensor that the input is.
Tensor written_tensor(const std::vector<double>& numbers, const TensorType& type, const std::string& argument) {
  if (type.dtype == DType::unknown || byte_size(type.dtype) == 0)
    throw fail(E::bad_option, "--input {}: the type of that tensor is not known", argument).hint("give a file");
  const auto count = static_cast<int64_t>(numbers.size());
  std::vector<int64_t> sizes = {count};
  if (type.shape.is_static() && type.shape.elements() == Dim(count)) sizes = type.shape.sizes();
  const Tensor tensor = Tensor::of<double>(type.dtype, sizes, numbers);
  for (int64_t i = 0; i < count; ++i)
    if (!is_float(type.dtype) && tensor.real(i) != numbers[static_cast<size_t>(i)])
      throw fail(E::bad_option, "--input {}: {} is not a value of type {}", argument, numbers[static_cast<size_t>(i)],
                 name_of(type.dtype));
  return tensor;
}

}  // namespace

/// Types that NumPy lacks come in wider ones, as `run --output-dir` writes them; nothing may be lost.
static Tensor from_wider(const Tensor& given, DType to, const std::string& name) {
  const bool small = is_integer(to) && bit_size(to) < 8;
  const DType wider = small ? (is_signed(to) ? DType::i8 : DType::u8) : DType::f32;
  const bool lacking = small || (is_small_float(to) && to != DType::f16);
  if (!lacking || given.dtype() != wider) return given;
  const Tensor narrow = given.cast(to);
  if (difference(narrow.cast(wider), given).max_abs != 0)
    throw fail(E::bad_binding, "--input {}: the array has values that {} does not have", name, name_of(to))
        .hint("round them to this type first");
  return narrow;
}

/// Where NAME of "NAME=FILE" ends, or of trtexec's "NAME:FILE".
static size_t end_of_name(const std::string& argument, const std::vector<std::string>& names) {
  const size_t equals = argument.find('='), colon = argument.find(':');
  if (equals != std::string::npos || colon == std::string::npos) return equals;
  return std::find(names.begin(), names.end(), argument.substr(0, colon)) == names.end() ? equals : colon;
}

/// "did you mean "x"? " where a name is close.
static std::string suggestion(const std::string& name, const std::vector<std::string>& names) {
  const std::string close = closest_name(name, names);
  return close.empty() ? "" : fmt::format("did you mean \"{}\"? ", close);
}

NamedTensors read_arrays(const std::vector<std::string>& arguments, const NamedTypes& known, const std::string& flag) {
  std::vector<std::string> names;
  for (const auto& [name, type] : known) names.push_back(name);
  NamedTensors arrays;
  const auto check_name = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw fail(E::unknown_name, "{}: the model has no tensor '{}' here", flag, name)
          .hint(fmt::format("{}known: {}", suggestion(name, names), fmt::join(names, ", ")));
  };
  const auto add = [&](const std::string& name, Tensor tensor) {
    check_name(name);
    const auto type = std::find_if(known.begin(), known.end(), [&](const auto& k) { return k.first == name; });
    if (flag == "--input") tensor = from_wider(tensor, type->second.dtype, name);
    if (!arrays.emplace(name, std::move(tensor)).second) throw fail(E::bad_option, "{} gives '{}' twice", flag, name);
  };
  for (const std::string& argument : arguments) {
    std::error_code error;
    const bool is_path = std::filesystem::exists(argument, error);
    const size_t equals = is_path ? std::string::npos : end_of_name(argument, names);
    const std::string name = equals == std::string::npos ? "" : argument.substr(0, equals);
    if (!name.empty()) check_name(name);
    if (name.empty() && !is_path)
      throw fail(E::file_not_found, "{}: there is no file '{}'", flag, argument)
          .hint(fmt::format("write {} NAME=FILE or {} NAME=[1,2,3]", flag, flag));
    const auto type = std::find_if(known.begin(), known.end(), [&](const auto& k) { return k.first == name; });
    if (type != known.end() && !std::filesystem::exists(argument.substr(equals + 1), error))
      if (const auto numbers = read_numbers(argument.substr(equals + 1))) {
        add(name, written_tensor(*numbers, type->second, argument));
        continue;
      }
    std::vector<NamedTensor> found =
        read_tensor_file(equals == std::string::npos ? argument : argument.substr(equals + 1));
    if (!name.empty()) {
      const auto same = std::find_if(found.begin(), found.end(), [&](const NamedTensor& t) { return t.first == name; });
      if (same == found.end() && found.size() != 1)
        throw fail(E::bad_option, "{} {}: the file holds {} arrays, none of them '{}'", flag, argument, found.size(),
                   name);
      add(name, same == found.end() ? found.front().second : same->second);
      continue;
    }
    for (NamedTensor& tensor : found) {
      const bool only = tensor.first.empty() && names.size() == 1 && found.size() == 1;
      if (tensor.first.empty() && !only)
        throw fail(E::bad_option, "{} {} does not say which tensor it is", flag, argument)
            .hint(fmt::format("write {} NAME={}", flag, argument));
      add(only ? names.front() : tensor.first, std::move(tensor.second));
    }
  }
  return arrays;
}

SymbolValues resolve_dimensions(const Graph& interface, const DimensionFlags& flags, const NamedTensors& given) {
  Wanted wanted = read_dimension_flags(interface, flags);
  take_from_arrays(interface, given, wanted.values);
  default_batch(interface, wanted.open, wanted.values);
  std::vector<std::string> missing;
  for (const std::string& name : interface.symbols())
    if (!wanted.values.contains(name) && !wanted.open.contains(name)) missing.push_back(name);
  if (!missing.empty()) refuse_open(interface, missing);
  return wanted.values;
}

SymbolValues given_dimensions(const Graph& interface, const DimensionFlags& flags) {
  return read_dimension_flags(interface, flags).values;
}

/// Arrays of the inputs; those that were fixed must have the value they were fixed to.
static NamedTensors given_arrays(const Graph& interface, const InputFlags& flags) {
  NamedTypes known = cli::types_of(interface.inputs());
  for (const auto& [name, value] : fixed_inputs(interface)) known.emplace_back(name, value.type());
  NamedTensors given = read_arrays(flags.files, known, "--input");
  for (const auto& [name, value] : fixed_inputs(interface)) {
    const auto at = given.find(name);
    if (at == given.end()) continue;
    if (!at->second.same_bits(value))
      throw fail(E::bad_binding, "'{}' was fixed to {} when the model was compiled, and {} is given", name,
                 text_of_values(value), text_of_values(at->second))
          .hint("leave --input " + name + " out, or compile the model again");
    given.erase(at);
  }
  return given;
}

SymbolValues known_dimensions(const Graph& interface, const InputFlags& flags) {
  SymbolValues known = given_dimensions(interface, flags.dimensions);
  take_from_arrays(interface, given_arrays(interface, flags), known);
  return known;
}

ModelInputs make_inputs(const Graph& interface, const InputFlags& flags) {
  const NamedTensors given = given_arrays(interface, flags);
  ModelInputs inputs;
  inputs.symbols = resolve_dimensions(interface, flags.dimensions, given);
  std::map<std::string, std::pair<double, double>> ranges = read_ranges(flags.ranges);
  for (const auto& [name, range] : ranges)
    if (given.contains(name)) throw fail(E::bad_option, "--range {} does not apply: --input gives that array", name);
  if (given.size() < interface.inputs().size() || !ranges.empty()) {  // drawing knows which names there are
    inputs.tensors = random_inputs(interface, {flags.seed, inputs.symbols, ranges});
  } else {
    inputs.tensors.resize(interface.inputs().size());
  }
  for (size_t i = 0; i < inputs.tensors.size(); ++i) {
    const auto array = given.find(interface.inputs()[i]->name);
    if (array != given.end()) inputs.tensors[i] = array->second;
  }
  inputs.symbols = bind_symbols(interface, inputs.tensors, inputs.symbols);
  return inputs;
}

std::optional<ModelInputs> other_inputs(const Graph& interface, InputFlags flags, const ModelInputs& first) {
  if (given_arrays(interface, flags).size() >= interface.inputs().size()) return std::nullopt;
  flags.seed += 1;
  flags.dimensions = {};
  for (const auto& [name, value] : first.symbols)
    if (interface.symbols().contains(name)) flags.dimensions.dims.push_back(fmt::format("{}={}", name, value));
  return make_inputs(interface, flags);
}

}  // namespace opfuse::cli
