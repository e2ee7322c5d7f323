// `--output` by its name: .npz holds all tensors, .npy and .pb one; any other name without a suffix is a folder.
#include "written_arrays.hpp"

#include <fmt/core.h>

#include <filesystem>
#include <set>

#include "base/fail.hpp"
#include "outputs.hpp"
#include "talk.hpp"

namespace opfuse::cli {
namespace {

namespace fs = std::filesystem;

/// The suffix that says one file; empty: a folder.
std::string suffix_of(const ArrayFlags& flags) {
  std::error_code error;
  if (flags.output.empty() || fs::is_directory(flags.output, error)) return "";
  return fs::path(flags.output).extension().string();  // of "results.d/" there is none
}

/// A tensor's file: its name with everything that is not a file name character replaced.
std::string file_name(std::string name) {
  for (char& c : name)
    if (c == '/' || c == '\\' || c == ':' || static_cast<unsigned char>(c) < 32) c = '_';
  return name.empty() || name[0] == '.' ? "_" + name : name;
}

/// Names that differ only in what files cannot have, and inputs that are named like outputs, are counted.
std::string unused(const std::string& name, std::set<std::string>& used) {
  std::string free = name;
  for (int i = 2; !used.insert(free).second; ++i) free = fmt::format("{}_{}", name, i);
  return free;
}

void write_folder(const std::string& folder, const std::vector<NamedTensor>& tensors) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw fail(E::file_write_failed, "cannot make the folder '{}': {}", folder, error.message());
  std::set<std::string> used;
  for (const auto& [name, tensor] : tensors) {
    const std::string path = (fs::path(folder) / (unused(file_name(name), used) + ".npy")).string();
    write_npy(path, tensor);
    say(fmt::format("wrote {}: {}", path, tensor.type().text()));
  }
}

}  // namespace

void add_array_flags(FlagSet& app, ArrayFlags& flags) {
  app.add_option(
         "-o,--output", flags.output,
         "write the outputs: all into FILE.npz, a single one into FILE.npy or FILE.pb, or each as NAME.npy into "
         "a folder")
      ->type_name("FILE|DIR");
  app.add_option("--output-dir", flags.folder, "write each output as NAME.npy")->type_name("DIR");
  app.add_flag("--save-inputs", flags.save_inputs, "write the inputs there too");
}

void check_array_flags(const FlagSet& app, const ArrayFlags& flags, size_t outputs) {
  if (app.given("--output") && app.given("--output-dir"))
    throw fail(E::bad_option, "--output and --output-dir both say where outputs go").hint("leave one out");
  if (flags.save_inputs && flags.output.empty() && flags.folder.empty())
    throw fail(E::bad_option, "--save-inputs does not apply: it goes with --output or --output-dir");
  const std::string suffix = suffix_of(flags);
  if (!suffix.empty() && suffix != ".npz" && suffix != ".npy" && suffix != ".pb")
    throw fail(E::bad_option, "--output {}: outputs are written as .npz, .npy or .pb, not {}", flags.output, suffix)
        .hint("name a file that ends in .npz, or a folder: " + flags.output + "/");
  if (!suffix.empty() || flags.output == "-") check_output("--output", flags.output);
  const std::string& folder = flags.output.empty() ? flags.folder : flags.output;
  if (std::error_code error; suffix.empty() && fs::exists(folder, error) && !fs::is_directory(folder, error))
    throw fail(E::file_write_failed, "'{}' is not a folder", folder)
        .hint("outputs are written into a folder, or FILE.npz");
  if (suffix != ".npy" && suffix != ".pb") return;
  if (outputs != 1)
    throw fail(E::bad_option, "--output {}: one tensor fits there, and the model has {} outputs", flags.output, outputs)
        .hint("name a file that ends in .npz, or a folder");
  if (flags.save_inputs)
    throw fail(E::bad_option, "--save-inputs does not apply: one tensor fits into {}", flags.output)
        .hint("name a file that ends in .npz, or a folder");
}

void write_arrays(const ArrayFlags& flags, const std::vector<NamedTensor>& outputs,
                  const std::vector<NamedTensor>& inputs) {
  std::vector<NamedTensor> all = outputs;
  if (flags.save_inputs) all.insert(all.end(), inputs.begin(), inputs.end());
  const std::string suffix = suffix_of(flags);
  if (suffix.empty()) {
    const std::string& folder = flags.output.empty() ? flags.folder : flags.output;
    if (!folder.empty()) write_folder(folder, all);
    return;
  }
  if (suffix == ".npy") write_npy(flags.output, all.at(0).second);
  if (suffix == ".pb") write_tensor_pb(flags.output, all.at(0).second, all.at(0).first);
  if (suffix == ".npz") {
    std::set<std::string> used;
    for (NamedTensor& tensor : all) tensor.first = unused(tensor.first, used);
    write_npz(flags.output, all);
  }
  for (const auto& [name, tensor] : all) say(fmt::format("wrote {}: {} {}", flags.output, name, tensor.type().text()));
}

}  // namespace opfuse::cli
