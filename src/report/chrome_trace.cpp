// Trace Event Format: complete events ("X") in microseconds. Track 0 has a launch from its first part's begin to its
// last part's end; runs of a launch in a loop are told apart by the launch between them. A worker waits between two of
// its parts, and before its first and after its last of the run.
#include "report/chrome_trace.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/arena_use.hpp"

namespace opfuse::report {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kProcess = 1;

Json name_event(const char* what, int track, const std::string& name) {
  return {{"ph", "M"}, {"pid", kProcess}, {"tid", track}, {"name", what}, {"args", {{"name", name}}}};
}

Json span(const std::string& name, const char* category, int track, int64_t begin_ns, int64_t end_ns, Json arguments) {
  return {{"ph", "X"},
          {"pid", kProcess},
          {"tid", track},
          {"name", name},
          {"cat", category},
          {"ts", static_cast<double>(begin_ns) * 1e-3},
          {"dur", static_cast<double>(end_ns - begin_ns) * 1e-3},
          {"args", std::move(arguments)}};
}

/// One run of a launch.
struct Call {
  int launch = 0;
  int64_t begin_ns = 0, end_ns = 0;
};

std::vector<Call> calls_of(const RunTrace& trace) {
  std::vector<Call> calls;
  for (const PartTime& p : trace.parts) {
    if (calls.empty() || calls.back().launch != p.launch) calls.push_back({p.launch, p.begin_ns, p.end_ns});
    calls.back().end_ns = std::max(calls.back().end_ns, p.end_ns);
  }
  int64_t at = 0;
  if (trace.parts.empty())  // a GPU's: one after the other
    for (size_t l = 0; l < trace.launch_ns.size(); ++l) {
      calls.push_back({static_cast<int>(l), at, at + trace.launch_ns[l]});
      at += trace.launch_ns[l];
    }
  return calls;
}

void add_workers(const RunTrace& trace, const ArtifactProgram& program, Json& events) {
  std::vector<int64_t> free_since(static_cast<size_t>(trace.threads), 0);
  const auto wait = [&](int worker, int64_t until) {
    int64_t& since = free_since[static_cast<size_t>(worker)];
    if (until > since) events.push_back(span("waiting", "wait", worker + 1, since, until, Json::object()));
  };
  for (const PartTime& p : trace.parts) {
    wait(p.worker, p.begin_ns);
    events.push_back(span(program.launches[static_cast<size_t>(p.launch)].name, "part", p.worker + 1, p.begin_ns,
                          p.end_ns, {{"launch", p.launch}, {"part", p.part}}));
    free_since[static_cast<size_t>(p.worker)] = p.end_ns;
  }
  for (int worker = 0; worker < trace.threads; ++worker) wait(worker, trace.total_ns);
}

}  // namespace

std::string chrome_trace(const std::string& model, const ArtifactProgram& program, const SymbolValues& sizes,
                         const RunTrace& trace) {
  Json events = Json::array();
  events.push_back(name_event("process_name", 0, "opfuse " + model));
  events.push_back(name_event("thread_name", 0, "launches"));
  for (int worker = 0; worker < trace.threads; ++worker)
    events.push_back(name_event("thread_name", worker + 1, "worker " + std::to_string(worker)));
  const ArenaUse arena = arena_use(program, sizes);
  for (const Call& call : calls_of(trace)) {
    const ArtifactLaunch& launch = program.launches[static_cast<size_t>(call.launch)];
    events.push_back(span(launch.name, "launch", 0, call.begin_ns, call.end_ns,
                          {{"launch", call.launch},
                           {"pattern", launch.pattern},
                           {"schedule", launch.schedule},
                           {"flop", launch.flops.evaluate(sizes)},
                           {"bytes", launch.bytes_read.evaluate(sizes) + launch.bytes_written.evaluate(sizes)},
                           {"nodes", launch.sources}}));
    events.push_back({{"ph", "C"},
                      {"pid", kProcess},
                      {"name", "arena bytes in use"},
                      {"ts", static_cast<double>(call.begin_ns) * 1e-3},
                      {"args", {{"bytes", arena.live[static_cast<size_t>(call.launch)]}}}});
  }
  add_workers(trace, program, events);
  const Json out{{"displayTimeUnit", "ms"},
                 {"otherData", {{"run_ns", trace.total_ns}, {"threads", trace.threads}}},
                 {"traceEvents", std::move(events)}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace opfuse::report
