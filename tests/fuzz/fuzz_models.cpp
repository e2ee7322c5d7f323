// Random graphs against the interpreter, in processes of their own. Finished seeds are appended to a log, so that a run
// can be stopped and goes on where it was.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "base/fail.hpp"
#include "fuzz/minimise.hpp"
#include "fuzz/sensitivity.hpp"
#include "onnx/tensor_files.hpp"
#include "onnx/write.hpp"
#include "opfuse/opfuse.hpp"
#include "ops/registry.hpp"

namespace opfuse::fuzz {
namespace {

struct Flags {
  uint64_t seed = 0;
  size_t models = 0;
  double minutes = 0;
  bool one = false, refused = false, totals = false, show = false, keep = false;
  std::string log, out = "fuzz-failures", dump, configuration, known;
  int stride = 1, offset = 0, seconds = 60;
};

/// Lines "seed kind threads nodes open exact half configuration".
std::map<uint64_t, std::string> read_log(const std::string& path) {
  std::map<uint64_t, std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) lines[std::stoull(line)] = line;
  return lines;
}

void print_totals(const std::map<uint64_t, std::string>& lines) {
  std::map<std::string, size_t> kinds, configurations, threads;
  size_t nodes = 0, open = 0, exact = 0, half = 0;
  for (const auto& [seed, line] : lines) {
    std::istringstream words(line);
    std::string number, kind, thread, configuration;
    size_t n = 0, o = 0, e = 0, h = 0;
    words >> number >> kind >> thread >> n >> o >> e >> h;
    std::getline(words >> std::ws, configuration);
    ++kinds[kind], ++threads[thread], ++configurations[configuration];
    nodes += n, open += o, exact += e, half += h;
  }
  fmt::print("{} models, {} nodes; {} with open dimensions, {} exact, {} f16\n", lines.size(), nodes, open, exact,
             half);
  for (const auto& [kind, count] : kinds) fmt::print("  {:8} {}\n", kind, count);
  for (const auto& [count, models] : threads) fmt::print("  threads {:2} {}\n", count, models);
  for (const std::string& name : all_configurations()) fmt::print("  {:30} {}\n", name, configurations[name]);
}

void dump(const std::string& folder, const Drawn& drawn, const Task& task) {
  std::filesystem::create_directories(folder);
  write_onnx(drawn.graph, folder + "/model.onnx", {.opset = 21});
  const std::vector<Tensor> inputs = inputs_of(drawn.graph, task, 0);
  for (size_t i = 0; i < inputs.size(); ++i)
    write_npy(fmt::format("{}/in_{}.npy", folder, drawn.graph.inputs()[i]->name), inputs[i]);
  const Expected expected = expected_of(drawn.graph, inputs, drawn.symbols, {.samples = 6, .scale = 4});
  for (size_t i = 0; i < expected.outputs.size(); ++i) {
    const Value* output = drawn.graph.outputs()[i];
    const Tensor& want = expected.outputs[i];
    write_npy(fmt::format("{}/out_{}.npy", folder, output->name),
              is_float(want.dtype()) ? want : want.cast(output->type.dtype));
    write_npy(fmt::format("{}/tolerance_{}.npy", folder, output->name), expected.tolerances[i]);
  }
}

Outcome run_seed(uint64_t seed, const Flags& flags, std::string& line, bool known) {
  const DrawOptions options = options_of(seed);
  std::optional<Drawn> drawn;
  const std::string path = fmt::format("{}/seed{}", flags.out, seed);
  // Drawing interprets, so it may crash as well: once in a process of its own.
  const Outcome drawing = isolated(
      [&]() -> Outcome {
        try {
          draw_graph(seed, options);
          return {};
        } catch (const std::exception& error) {
          return {Kind::error, std::string("while drawing: ") + error.what()};
        }
      },
      flags.seconds);
  Task task;
  task.configuration = configuration_of(seed, options);
  Outcome outcome = drawing;
  size_t nodes = 0;
  bool open = false;
  if (!drawing.failed()) {
    drawn = draw_graph(seed, options);
    nodes = drawn->graph.nodes().size();
    open = !drawn->graph.symbols().empty();
    task = task_of(seed, options, *drawn);
    if (!flags.configuration.empty()) task.configuration = parse_configuration(flags.configuration);
    if (flags.show) fmt::print("{}\n", print(drawn->graph, {.sources = false}));
    if (!flags.dump.empty()) dump(fmt::format("{}/seed{}", flags.dump, seed), *drawn, task);
    outcome = isolated([&] { return check(drawn->graph, task); }, flags.seconds);
  }
  line = fmt::format("{} {} {} {} {:d} {:d} {:d} {}", seed, kKinds[static_cast<size_t>(outcome.kind)],
                     task.configuration.threads, nodes, open, options.exact, options.type == DType::f16,
                     task.configuration.name());
  if (outcome.failed() && drawn && !flags.keep && !known) {
    fmt::print("seed {}: {}: {}\n  {} threads={}: minimising\n", seed, kKinds[static_cast<size_t>(outcome.kind)],
               outcome.detail, task.configuration.name(), task.configuration.threads);
    const Minimised minimised = minimise(drawn->graph, task, outcome, 180);
    save_failure(path, minimised, task);
    fmt::print("  {} nodes: {}\n  {}\n", minimised.graph.nodes().size(), path, minimised.outcome.detail);
  } else if (outcome.failed() || ((flags.one || flags.refused) && !outcome.detail.empty())) {
    fmt::print("seed {}: {}: {}\n  {}\n", seed, kKinds[static_cast<size_t>(outcome.kind)], outcome.detail,
               task.configuration.name());
  }
  std::fflush(stdout);
  return outcome;
}

/// Seeds that fail today: "SEED why".
std::set<uint64_t> known_failures(const std::string& path) {
  std::set<uint64_t> seeds;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line[0] != '#') seeds.insert(std::stoull(line));
  return seeds;
}

/// Loads the code generator once, so that every child has it.
void warm_up() {
  Graph graph = parse_graph("graph (%x: f32[4]) { %y = relu(%x) return %y }", ops());
  compile(Model::from_graph(std::move(graph)), Target::host(), {.compile_threads = 1, .cache = false});
}

int run(const Flags& flags) {
  const auto start = std::chrono::steady_clock::now();
  const auto minutes = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 60;
  };
  std::map<uint64_t, std::string> lines;
  if (!flags.log.empty()) lines = read_log(flags.log);
  std::ofstream log;
  if (!flags.log.empty()) log.open(flags.log, std::ios::app);
  if (flags.totals) return print_totals(lines), 0;
  warm_up();
  const std::set<uint64_t> known = known_failures(flags.known);
  size_t done = 0, failed = 0;
  const size_t models = flags.one ? 1 : flags.models ? flags.models : flags.minutes > 0 ? SIZE_MAX : 300;
  for (uint64_t seed = flags.seed + static_cast<uint64_t>(flags.offset); done < models;
       seed += static_cast<uint64_t>(flags.stride)) {
    if (lines.contains(seed)) continue;
    if (flags.minutes > 0 && minutes() > flags.minutes) break;
    std::string line;
    const bool fails = run_seed(seed, flags, line, known.contains(seed)).failed();
    if (known.contains(seed))
      fmt::print("seed {} is listed in {}: {}\n", seed, flags.known, fails ? "fails" : "right now");
    failed += fails && !known.contains(seed);
    ++done;
    lines[seed] = line;
    if (log) log << line << std::endl;
  }
  if (flags.log.empty()) print_totals(lines);
  fmt::print("{} failed of {} in this run, {:.1f} minutes\n", failed, done, minutes());
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace opfuse::fuzz

int main(int argc, char** argv) {
  opfuse::fuzz::Flags flags;
  CLI::App app("random graphs, compiled, against the interpreter");
  app.add_option("--first", flags.seed, "first seed");
  app.add_option_function<uint64_t>(
      "--seed", [&](uint64_t seed) { flags.seed = seed, flags.one = true; }, "this seed alone");
  app.add_option("--models", flags.models, "seeds to run (default 300, without --minutes)");
  app.add_option("--minutes", flags.minutes, "end after this time");
  app.add_option("--log", flags.log, "finished seeds; they are not run again");
  app.add_option("--out", flags.out, "folder of failures");
  app.add_option("--dump", flags.dump,
                 "write models, inputs, expected outputs and tolerances there, for onnxruntime_check.py");
  app.add_option("--configuration", flags.configuration,
                 "this one instead of the seed's: \"cpu:avx2 no-chains exact threads=2\"");
  app.add_option("--known", flags.known, "list of seeds that are known to fail");
  app.add_option("--stride", flags.stride, "every so many seeds");
  app.add_option("--offset", flags.offset, "from this one on");
  app.add_option("--seconds", flags.seconds, "for one model");
  app.add_flag("--totals", flags.totals, "only count what the log has");
  app.add_flag("--refused", flags.refused, "tell what was refused, and why");
  app.add_flag("--show", flags.show, "print the graph");
  app.add_flag("--no-minimise", flags.keep, "only tell what failed");
  CLI11_PARSE(app, argc, argv);
  try {
    return opfuse::fuzz::run(flags);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
