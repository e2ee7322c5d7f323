// A name that says one kind of file while another is written is a mistake more often than a wish: it is refused where
// the suffix is one that people know. An unknown one says nothing where there is one format, but is refused where it
// should have chosen between several. No suffix is the first of them.
#include "outputs.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/fail.hpp"
#include "base/read_files.hpp"

namespace opfuse::cli {
namespace {

/// Suffixes with a meaning of their own.
constexpr const char* kKnown[] = {
    ".onnx", ".opf", ".fir", ".json", ".toml", ".npy", ".npz", ".pb",  ".bin", ".data", ".txt",        ".md", ".csv",
    ".html", ".pt",  ".pth", ".zip",  ".gz",   ".py",  ".c",   ".cpp", ".h",   ".hpp",  ".s",          ".ll", ".cu",
    ".so",   ".o",   ".a",   ".svg",  ".png",  ".pdf", ".dot", ".xml", ".yml", ".yaml", ".safetensors"};

/// Before minutes of work: the folder is there, and the file can be made in it.
void check_place(const std::string& flag, const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    throw fail(E::file_write_failed, "{} {}: that is a folder", flag, path.string()).hint("name a file in it");
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (!std::filesystem::is_directory(folder, error))
    throw fail(E::file_write_failed, "{} {}: there is no folder '{}'", flag, path.string(), folder.string())
        .hint("mkdir -p " + folder.string());
  const bool device = std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error);
  const std::filesystem::path& written = device ? path : folder;  // files are renamed into place
  if (::access(written.c_str(), W_OK) != 0)
    throw fail(E::file_write_failed, "{} {}: cannot write there: {}", flag, path.string(), std::strerror(errno));
}

/// Two outputs of one command in one file: the second would replace the first.
void check_twice(const std::string& flag, const std::filesystem::path& path) {
  static std::map<std::filesystem::path, std::string> outputs;
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) return;
  const auto [at, fresh] = outputs.emplace(std::filesystem::weakly_canonical(path, error), flag);
  if (!fresh && at->second != flag)
    throw fail(E::bad_option, "{} and {} name the same file: {}", at->second, flag, path.string());
}

}  // namespace

void add_force_flag(FlagSet& app, bool& force) {
  app.add_flag("--force", force, "write the file although its suffix names another format");
}

void check_output(const std::string& flag, const std::string& path) {
  if (path.empty()) return;
  if (path == "-")
    throw fail(E::bad_option, "{} -: reports go to standard output, files do not", flag)
        .hint(fmt::format("name a file, or {} /dev/stdout", flag));
  if (const std::string input = read_as(path); !input.empty())
    throw fail(E::bad_option, "{} {} would replace the input '{}'", flag, path, input)
        .hint("name another file to write");
  check_place(flag, path);
  check_twice(flag, path);
}

void check_output(const std::string& flag, const std::string& path, const std::vector<std::string>& suffixes,
                  bool force, bool has_force) {
  check_output(flag, path);
  if (path.empty() || force) return;
  const std::string suffix = std::filesystem::path(path).extension().string();
  const bool known = std::any_of(std::begin(kKnown), std::end(kKnown), [&](const char* s) { return suffix == s; });
  const bool chooses = suffixes.size() > 1 && !suffix.empty();
  if ((!known && !chooses) || std::find(suffixes.begin(), suffixes.end(), suffix) != suffixes.end()) return;
  const std::string formats = fmt::format("{}", fmt::join(suffixes, " or "));
  throw fail(E::bad_option, "{} {}: what is written there is {}, not {}", flag, path, formats, suffix)
      .hint(fmt::format("name a file that ends in {}{}", known ? suffixes.front() : formats,
                        has_force ? ", or add --force" : ""));
}

void check_companions(const FlagSet& app, const std::vector<Companion>& companions) {
  for (const auto& [flag, needs] : companions)
    if (app.given(flag) && !app.given(needs))
      throw fail(E::bad_option, "{} does not apply: it goes with {}", flag, needs);
}

void refuse_flags(const FlagSet& app, const std::vector<std::string>& flags, const std::string& why,
                  const std::string& hint) {
  for (const std::string& flag : flags)
    if (app.given(flag)) throw fail(E::bad_option, "{} does not apply: {}", flag, why).hint(hint);
}

}  // namespace opfuse::cli
