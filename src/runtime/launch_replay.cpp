#include "runtime/launch_replay.hpp"

#include "base/copy_bytes.hpp"
#include "base/now_ns.hpp"
#include "runtime/launch_call.hpp"

namespace opfuse {
namespace {

struct Range {
  Storage storage = Storage::arena;
  int root = -1;
  int64_t begin = 0, end = 0;
  bool meets(const Range& o) const {
    return storage == o.storage && root == o.root && begin < o.end && o.begin < end && storage != Storage::constant;
  }
};

}  // namespace

LaunchReplay::LaunchReplay(Executor& pool, const ArtifactProgram& program, const SymbolValues& sizes)
    : pool_(pool), overlaps_(program.launches.size()), in_loop_(program.launches.size(), 0) {
  for (const ArtifactBody& body : program.bodies)
    for (int64_t l = body.first; l < body.first + body.launches; ++l) in_loop_[static_cast<size_t>(l)] = 1;
  std::vector<Range> ranges;
  for (const ArtifactBuffer& b : program.buffers) {
    const int64_t begin = b.offset.evaluate(sizes);
    const bool rooted = b.storage == Storage::input || b.storage == Storage::output;
    ranges.push_back({b.storage, rooted ? b.root : -1, begin, begin + b.bytes.evaluate(sizes)});
  }
  for (size_t l = 0; l < overlaps_.size(); ++l) {
    const std::vector<int>& own = program.launches[l].buffers;
    for (size_t i = 0; i < own.size(); ++i)
      for (size_t other = 0; other < own.size() && own[i] >= 0; ++other)
        if (other != i && own[other] >= 0 &&
            ranges[static_cast<size_t>(own[i])].meets(ranges[static_cast<size_t>(own[other])])) {
          const Range& r = ranges[static_cast<size_t>(own[i])];
          overlaps_[l].push_back({i, static_cast<size_t>(r.end - r.begin)});
          break;
        }
  }
  start();
}

void LaunchReplay::start() { nanoseconds_.assign(overlaps_.size(), -1); }

void LaunchReplay::run(int64_t parts, PartFunction fn, void* context) {
  const ReadyLaunch& launch = *static_cast<const LaunchCall*>(context)->launch;
  if (in_loop_[launch.launch]) return pool_.run(parts, fn, context);
  const std::vector<Overlap>& overlaps = overlaps_[launch.launch];
  size_t bytes = 0;
  for (const Overlap& o : overlaps) bytes += o.bytes;
  saved_.resize(bytes);
  const auto each = [&](const auto& copy) {
    char* at = saved_.data();
    for (const Overlap& o : overlaps) {
      copy(at, static_cast<char*>(launch.pointers[o.buffer]), o.bytes);
      at += o.bytes;
    }
  };
  each([](char* saved, const char* data, size_t n) { copy_bytes(saved, data, n); });
  pool_.run(parts, fn, context);
  each([](const char* saved, char* data, size_t n) { copy_bytes(data, saved, n); });
  const int64_t begin = now_ns();
  pool_.run(parts, fn, context);
  nanoseconds_[launch.launch] = now_ns() - begin;
}

}  // namespace opfuse
