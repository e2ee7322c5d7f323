// Running passes. Per pass: run, compare the hash with what the pass said, remove dead nodes, verify, dump. Most passes
// change nothing, so hash and copy of the graph before a pass are kept until one does.
// A failing pass leaves a reproducer: `opfuse-repro-XXXX.fir`, the graph as it was before the pass.
#include "passes/pass_manager.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include "base/fail.hpp"
#include "base/user_folders.hpp"
#include "ir/constant_file.hpp"
#include "ir/fir_file.hpp"
#include "ir/untouched.hpp"

namespace opfuse {

namespace {

/// Rounds of a group; real models need two or three, and one that unravels from its end no more than it has nodes.
size_t most_rounds(const Graph& graph) { return 20 + std::min<size_t>(graph.nodes().size(), 1000); }

constexpr std::string_view kReproducerMark = "fir 1 | before pass ", kTargetMark = " | target ";

class Manager {
 public:
  Manager(Graph& graph, const PassOptions& options) : graph_(graph), options_(options) {
    context_.fold_growth_bytes = options.fold_growth_bytes;
    context_.report = options.report;
    if (!options.dump_dir.empty()) {
      std::error_code error;
      std::filesystem::create_directories(options.dump_dir, error);
      if (error)
        throw fail(E::file_write_failed, "cannot make the folder '{}': {}", options.dump_dir, error.message())
            .hint("name a folder for the dumps where you may write");
      dumps_ = options.first_dump;
      const std::string constants = dumps_ == 0 ? "constants.bin" : fmt::format("constants-{:02}.bin", dumps_);
      dump_constants_.emplace((std::filesystem::path(options.dump_dir) / constants).string());
      dump(options.dump_start.name, options.dump_start.what);
    }
  }

  PassRun run(const std::vector<Pass>& passes) {
    if (options_.verify) verify(graph_);
    for (const Pass& pass : passes) run_any(pass);
    if (dump_constants_) dump_constants_->commit();
    result_.notes = std::move(context_.notes);
    result_.next_dump = dumps_;
    return std::move(result_);
  }

 private:
  Graph& graph_;
  const PassOptions& options_;
  PassContext context_;
  PassRun result_;
  std::optional<ConstantFile> dump_constants_;
  int dumps_ = 0;
  std::optional<Graph> before_;  ///< the graph as it is before the next pass

  bool run_any(const Pass& pass) {
    if (pass.repeat.empty()) return run_one(pass);
    bool any = false;
    const size_t most = most_rounds(graph_);
    for (size_t round = 0; round < most; ++round) {
      bool changed = false;
      for (const Pass& member : pass.repeat) changed |= run_any(member);
      if (!changed) return any;
      any = true;
    }
    throw fail(E::internal, "the passes of {} still change the graph after {} rounds", pass.name, most);
  }

  bool run_one(const Pass& pass) {
    if (!before_) before_ = graph_.clone();
    const auto start = std::chrono::steady_clock::now();
    PassRecord record{pass.name, false, 0, graph_.nodes().size(), 0};
    try {
      record.changed = pass.run(graph_, context_);
      if (!record.changed && !left_alone()) {
        throw fail(E::internal, "pass {} changed the graph without saying so", pass.name);
      }
      if (record.changed) graph_.remove_dead_nodes();
      if (record.changed && options_.verify) verify(graph_);
    } catch (Error& error) {
      if (dump_constants_) dump_constants_->commit();
      if (error.diagnostic().name != "internal") throw error.during(pass.name);
      throw error.during(pass.name).hint(reproducer(*before_, pass.name));
    } catch (const std::exception& error) {
      throw fail(E::internal, "pass {} failed: {}", pass.name, error.what()).hint(reproducer(*before_, pass.name));
    }
    if (record.changed) before_.reset();
    record.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    record.nodes_after = graph_.nodes().size();
    if (record.changed) dump(pass.name, fmt::format("{} -> {} nodes", record.nodes_before, record.nodes_after));
    result_.records.push_back(record);
    return record.changed;
  }

  bool left_alone() const {
    return untouched(graph_, *before_) || structural_hash(graph_, false) == structural_hash(*before_, false);
  }

  void dump(const std::string& name, const std::string& what) {
    if (!dump_constants_) return;
    const std::string file = fmt::format("{:02}-{}.fir", dumps_, name);
    const std::string header = fmt::format("fir 1 | after {:02} {} ({})", dumps_, name, what);
    ++dumps_;
    write_fir(graph_, (std::filesystem::path(options_.dump_dir) / file).string(), header, *dump_constants_);
  }

  std::string reproducer(const Graph& before, const std::string& pass) const {
    const std::string name = fmt::format("opfuse-repro-{}.fir", structural_hash(before, false).hex().substr(0, 8));
    const std::filesystem::path folder =
        options_.reproducer_dir.empty() ? reproducer_folder() : options_.reproducer_dir;
    const std::string path = (folder / name).string();
    try {
      std::filesystem::create_directories(folder);
      const std::string target = options_.target.empty() ? "" : std::string(kTargetMark) + options_.target;
      write_fir(before, path, std::string(kReproducerMark) + pass + target);
    } catch (const std::exception& error) {
      return fmt::format("no reproducer: {}", error.what());
    }
    return fmt::format("reproducer: {} (pass {})", path, pass);
  }
};

std::string g_reproducer_folder;  // set once, before passes run

}  // namespace

void set_reproducer_folder(std::string folder) { g_reproducer_folder = std::move(folder); }
std::string reproducer_folder() { return g_reproducer_folder.empty() ? state_folder() : g_reproducer_folder; }

void PassContext::note(std::string text) {
  if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(std::move(text));
}

bool Pass::operator()(Graph& graph, RewriteReport* report) const {
  PassContext context;
  context.report = report;
  return run(graph, context);
}

Pass until_stable(std::string name, std::vector<Pass> passes) {
  return {std::move(name), "Its passes in turn until none changes the graph.", {}, std::move(passes)};
}

bool PassRun::changed() const {
  return std::any_of(records.begin(), records.end(), [](const PassRecord& r) { return r.changed; });
}

PassRun run_passes(Graph& graph, const std::vector<Pass>& passes, const PassOptions& options) {
  return Manager(graph, options).run(passes);
}

Reproducer parse_reproducer(std::string_view text) {
  std::string_view line = text.substr(0, text.find('\n'));
  if (!line.starts_with("// ")) return {};
  line.remove_prefix(3);
  if (!line.starts_with(kReproducerMark)) return {};
  line.remove_prefix(kReproducerMark.size());
  const size_t mark = line.find(kTargetMark);
  if (mark == std::string_view::npos) return {std::string(line), {}};
  return {std::string(line.substr(0, mark)), std::string(line.substr(mark + kTargetMark.size()))};
}

}  // namespace opfuse
