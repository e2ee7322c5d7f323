// opfuse doctor: what a bug report needs to say about the machine, the libraries and the caches; warns of what makes
// timings vary.
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/free_memory.hpp"
#include "console.hpp"
#include "cuda/compilers.hpp"
#include "device/driver.hpp"
#include "driver/pipeline.hpp"
#include "link/kernel_cache.hpp"
#include "ops/registry.hpp"
#include "profile/machine_limits.hpp"
#include "profile/probe_machine.hpp"
#include "profile/system_name.hpp"
#include "report.hpp"
#include "verb.hpp"

namespace opfuse::cli {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The generator library is asked for a kernel: that it opens, and that what it makes runs.
std::string generator_state() {
  try {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, Shape{8}});
    Node* node = graph.add_node(op_named("sigmoid"), AttrMap{}, {x}, 1, {{"sigmoid", "Sigmoid", "", 17}});
    node->output()->name = "y";
    graph.set_outputs({node->output()});
    const TargetInfo target = host_target();
    ArtifactOptions options;
    options.cache = false;
    const Executable executable =
        Executable::from_artifact(build_artifact(lower_to_program(graph, target), target, options));
    std::vector<float> in = {-50, 2, -3, 0, -5, 6, -7, 50}, out(8);
    Context context = executable.create_context({1});
    context.bind("x", view(in, {8}));
    context.bind("y", view(out, {8}));
    context.run();
    return out[0] < 1e-6f && out[3] == 0.5f && out[7] == 1 ? "ok" : "generates wrong code";
  } catch (const Error& e) {
    return e.diagnostic().message;
  }
}

std::string cache_state(const std::string& folder) {
  if (folder.empty()) return "off: no home folder";
  std::error_code error;
  size_t files = 0;
  double bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    ++files;
    std::error_code ignored;
    const auto size = entry.file_size(ignored);
    if (!ignored) bytes += static_cast<double>(size);
  }
  const std::string what = error ? "not yet made" : fmt::format("{} kernels, {}", files, human_bytes(bytes));
  std::filesystem::path place = folder;
  while (!place.empty() && !std::filesystem::exists(place, error)) place = place.parent_path();
  return fmt::format("{} ({}{})", folder, what, access(place.c_str(), W_OK) == 0 ? "" : ", NOT WRITABLE");
}

struct Findings {
  Json facts = Json::object();
  std::vector<std::string> warnings;
};

Findings examine(bool limits) {
  Findings f;
  const TargetInfo target = host_target();
  f.facts["opfuse"] = version();
  f.facts["formats"] = fmt::format("artifact {}, codegen {}", kArtifactFormat, kCodegenVersion);
  f.facts["system"] = system_name();
  f.facts["processor"] = processor_name();
  f.facts["cpu_features"] = host_features();
  f.facts["target"] = target.name;
  f.facts["threads"] = fmt::format("{} (affinity mask and CPU quota; {} processors online)", default_threads(),
                                   sysconf(_SC_NPROCESSORS_ONLN));
  f.facts["caches"] =
      fmt::format("L1 {}, L2 {}, L3 {}", human_bytes(static_cast<double>(target.l1_bytes)),
                  human_bytes(static_cast<double>(target.l2_bytes)), human_bytes(static_cast<double>(target.l3_bytes)));
  const std::string generator = generator_state();
  f.facts["code_generator"] = generator;
  if (generator != "ok") f.warnings.push_back("code generator: " + generator + " (running an .opf needs none)");
  f.facts["cuda_driver"] = cuda::driver_state();
  f.facts["cuda_compiler"] = cuda::nvrtc_state();
  f.facts["malloc"] = malloc_name();
  const std::string cache = cache_state(KernelCache::default_folder());
  f.facts["kernel_cache"] = cache;
  if (cache.find("NOT WRITABLE") != std::string::npos)
    f.warnings.push_back("the kernel cache is not writable: every compile starts from nothing");
  const std::string governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  f.facts["governor"] = governor.empty() ? "unknown" : governor;
  if (!governor.empty() && governor != "performance")
    f.warnings.push_back("clock governor '" + governor + "': timings may vary");
  const std::string load = first_line("/proc/loadavg");
  f.facts["load"] = load;
  if (!load.empty() && std::atof(load.c_str()) > 0.5 * default_threads())
    f.warnings.push_back("other programs are running (load " + load.substr(0, load.find(' ')) + "): timings may vary");
  if (limits) {
    const MachineLimits measured = measure_limits(default_threads());
    f.facts["fma_limit_gflop_per_s"] = measured.fma_gflops;
    Json reads = Json::array();
    for (const ReadRate& level : measured.reads)
      reads.push_back({{"bytes", level.bytes}, {"gb_per_s", level.gb_per_s}});
    f.facts["read_limits"] = std::move(reads);
  }
  return f;
}

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.1f}", value.get<double>());
  std::vector<std::string> words;
  for (const Json& item : value)
    words.push_back(item.is_string() ? item.get<std::string>()
                                     : fmt::format("{:.1f} GB/s up to {}", item["gb_per_s"].get<double>(),
                                                   human_bytes(item["bytes"].get<double>())));
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

std::function<int()> add_doctor(FlagSet& app) {
  auto json = std::make_shared<bool>(false);
  auto limits = std::make_shared<bool>(false);
  app.add_flag("--limits", *limits, "also measure FMA and read rates (half a second)");
  app.add_flag("--json", *json, "as JSON");
  return [json, limits] {
    const Findings findings = examine(*limits);
    if (*json) {
      Json out = document("opfuse.doctor/1");
      out.update(findings.facts);
      out["warnings"] = findings.warnings;
      print_json(out);
      return kOk;
    }
    for (const auto& [name, value] : findings.facts.items()) fmt::print("{:<22} {}\n", name, text_of(value));
    for (const std::string& text : findings.warnings) fmt::print("! {}\n", text);
    return kOk;
  };
}

}  // namespace opfuse::cli
