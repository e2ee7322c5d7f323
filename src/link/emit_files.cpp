#include "link/emit_files.hpp"

#include <fmt/ranges.h>

#include <cctype>
#include <filesystem>
#include <set>
#include <sstream>

#include "base/atomic_file.hpp"
#include "base/fail.hpp"

namespace opfuse {
namespace {

/// A file name from a launch name: letters, digits, '_', '-' and '.', at most 120 characters.
std::string file_stem(const std::string& name) {
  std::string stem;
  for (char c : name.substr(0, 120))
    stem += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' ? c : '_';
  return stem.empty() ? "kernel" : stem;
}

std::string header(const Program& program, const std::vector<size_t>& launches, const KernelCode& kernel,
                   const std::string& comment) {
  const Launch& first = program.launches[launches.front()];
  std::ostringstream text;
  text << "kernel " << kernel.symbol << "\nschedule " << first.schedule.text() << "\nparts " << kernel.parts.text()
       << ", scratch " << kernel.scratch_bytes << " bytes\n";
  for (size_t p = 0; p < first.buffers.size(); ++p) {
    const Buffer& b = program.buffers[static_cast<size_t>(first.buffers[p])];
    text << "param " << p << " : " << first.region.params[p].type.text() << " layout " << b.layout.text() << "\n";
  }
  for (size_t l : launches)
    text << "launch " << program.launches[l].name << " from "
         << fmt::format("{}", fmt::join(program.launches[l].sources, ", ")) << "\n";
  text << "region\n" << print(first.region);
  std::istringstream lines(text.str());
  std::string out, line;
  while (std::getline(lines, line)) out += comment + " " + line + "\n";
  return out;
}

/// Groups and source nodes of a CUDA kernel; the file itself says the rest.
std::string group_comment(const Program& program, const std::vector<size_t>& launches) {
  std::string out;
  for (size_t l : launches) {
    const Launch& launch = program.launches[l];
    out += fmt::format("// group     {}{}\n// nodes     {}\n", launch.name,
                       launch.pattern.empty() ? "" : fmt::format(" ({})", launch.pattern),
                       fmt::join(launch.sources, ", "));
  }
  return out;
}

void write(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace

void emit_kernel_files(const Program& program, const std::vector<size_t>& kernel_of_launch,
                       const std::vector<KernelCode>& kernels, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw fail(E::file_write_failed, "cannot make the folder '{}': {}", folder, error.message()).file(folder);
  std::set<std::string> taken;
  for (size_t k = 0; k < kernels.size(); ++k) {
    std::vector<size_t> launches;
    for (size_t l = 0; l < kernel_of_launch.size(); ++l)
      if (kernel_of_launch[l] == k) launches.push_back(l);
    if (launches.empty()) continue;
    std::string stem = file_stem(program.launches[launches.front()].name);
    while (!taken.insert(stem).second) stem += "_";
    const std::string base = folder + "/" + stem;
    if (!kernels[k].llvm_ir.empty())
      write(base + ".ll", header(program, launches, kernels[k], ";") + kernels[k].llvm_ir);
    if (!kernels[k].cuda.empty()) write(base + ".cu", group_comment(program, launches) + kernels[k].cuda);
    if (!kernels[k].assembly.empty())
      write(base + ".s", header(program, launches, kernels[k], "#") + kernels[k].assembly);
  }
}

}  // namespace opfuse
