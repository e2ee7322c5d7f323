// The scheduler of an emulated block, and the loading of emulated kernels.
#include "device/emulation.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/fail.hpp"
#include "device/bulk_copies.hpp"
#include "device/fibers.hpp"
#include "device/shared_races.hpp"

namespace opfuse::cuda {
namespace {

constexpr size_t kSlotBytes = 1024;
constexpr unsigned kWarp = 32;
constexpr unsigned char kPoison = 0xFF;  ///< NaN in every float format

/// A warp exchanges (shuffles, matrices) without ordering memory; a warp's barrier orders it.
enum class State : char {
  runnable,
  at_barrier,
  at_exchange,
  at_warp_barrier,
  at_named_barrier,
  at_phase,
  at_store,
  at_earlier,
  ended
};

/// Shared memory of a launch: a kernel's own arrays, then what the launch gives.
struct SharedRange {
  const char *begin = nullptr, *end = nullptr;
  size_t bytes() const { return static_cast<size_t>(end - begin); }
  bool holds(const char* p) const { return p >= begin && p < end; }
};

/// One block at a time per host thread.
class Block {
 public:
  void run(EmulatedModule::Kernel kernel, EmulatedThread& view, unsigned size, void** arguments, uint64_t seed,
           SharedRange arrays, SharedRange given, const std::function<void()>& earlier) {
    arrays_ = arrays;
    given_ = given;
    given_at_ = (arrays.bytes() + 15) / 16 * 16;
    races_.start(size, given_at_ + given.bytes());
    bulk_.start(races_, view.launch_shared, given.bytes(), given_at_, view.lot);
    waits_.assign(size, {});
    kernel_ = kernel;
    arguments_ = arguments;
    view_ = &view;
    random_ = seed * 0x9E3779B97F4A7C15u + 1;
    for (int i = 0; i < 4; ++i) draw();  // neighbouring seeds part
    fault_.clear();
    by_warp_ = draw() % 2 != 0;
    states_.assign(size, State::runnable);
    slots_.resize(((size + kWarp - 1) / kWarp) * kWarp * kSlotBytes);
    fibers_.start(
        size, [](void* self) { static_cast<Block*>(self)->kernel_(static_cast<Block*>(self)->arguments_); }, this);
    ready_.clear();
    for (unsigned i = 0; i < size; ++i) ready_.push_back(i);
    size_t ended = 0;
    while (ended < size) {
      while (ready_.empty()) release();
      const size_t pick = choose();
      const unsigned thread = ready_[pick];
      ready_[pick] = ready_.back();
      ready_.pop_back();
      current_ = thread;
      view_->thread = thread;
      const bool ended_now = fibers_.resume(thread);
      if (!fault_.empty()) throw EmulationError{fault_};
      if (ended_now) {
        states_[thread] = State::ended;
        ++ended;
      }
      if (states_[thread] == State::at_earlier) {
        earlier();  // on the host's stack: it runs blocks of its own
        make_ready(thread);
      }
      bulk_.land_some();
      wake();
    }
    bulk_.finish();
    check_bulk();
  }

  // ---- the copy engine ----

  unsigned current() const { return current_; }
  BulkCopies& bulk() { return bulk_; }
  /// Behind what a thread has asked of the copy engine.
  void after_bulk() {
    if (!races_.found().empty()) fault(races_.found());
    if (!bulk_.found().empty()) fault(bulk_.found());
  }
  /// Even a phase that is over lets others run first now and then.
  void wait_phase(const void* barrier, int parity) {
    const unsigned self = current_;
    if (!bulk_.passed(barrier, parity) || draw() % 4 == 0) {
      after_bulk();
      waits_[self] = {barrier, parity};
      states_[self] = State::at_phase;
      if (bulk_.passed(barrier, parity)) make_ready(self);
      fibers_.yield();
    }
    bulk_.acquire(self, barrier);
    after_bulk();
  }
  void wait_stores(int pending) {
    while (!bulk_.stored(current_, pending)) {
      after_bulk();
      make_ready(current_);
      fibers_.yield();
    }
    after_bulk();
  }
  void wait_named(int id, int threads) {
    const unsigned self = current_;
    waits_[self] = {nullptr, id, threads};
    states_[self] = State::at_named_barrier;
    std::vector<unsigned> there;
    for (unsigned i = 0; i < states_.size(); ++i)
      if (states_[i] == State::at_named_barrier && waits_[i].number == id) there.push_back(i);
    for (unsigned i : there)
      if (waits_[i].threads != threads) fault("threads wait at one named barrier for different numbers of threads");
    if (there.size() == static_cast<size_t>(threads)) {
      SharedRaces::Clocks all;
      for (unsigned i : there) races_.release(i, all);
      for (unsigned i : there) races_.acquire(i, all), make_ready(i);
    }
    fibers_.yield();
  }

  void wait_earlier() {
    states_[current_] = State::at_earlier;
    fibers_.yield();
  }

  void wait(State state) {
    const unsigned self = current_;
    states_[self] = state;
    if (state != State::at_barrier) try_release_warp(self / kWarp, state);
    fibers_.yield();
  }

  void fault(const std::string& why) {
    fault_ = why;
    for (;;) fibers_.yield();
  }

  void touched(const void* p, unsigned bytes, SharedRaces::Access how) {
    const auto* at = static_cast<const char*>(p);
    if (how == SharedRaces::Access::fence)
      races_.touch(current_, 0, 0, how);
    else if (arrays_.holds(at))
      races_.touch(current_, static_cast<size_t>(at - arrays_.begin), bytes, how);
    else if (given_.holds(at))
      races_.touch(current_, given_at_ + static_cast<size_t>(at - given_.begin), bytes, how);
    if (!races_.found().empty()) fault(races_.found());
  }

  char* slot(int lane) { return slots_.data() + (current_ / kWarp * kWarp + static_cast<unsigned>(lane)) * kSlotBytes; }

 private:
  Fibers fibers_;
  EmulatedModule::Kernel kernel_ = nullptr;
  void** arguments_ = nullptr;
  EmulatedThread* view_ = nullptr;
  uint64_t random_ = 1;
  unsigned current_ = 0;
  bool by_warp_ = false;
  std::string fault_;
  SharedRange arrays_, given_;
  size_t given_at_ = 0;  ///< where bytes that the launch gives begin among all of shared memory
  SharedRaces races_;
  BulkCopies bulk_;
  struct Wait {
    const void* barrier = nullptr;  ///< of phases
    int number = 0;                 ///< its parity; of a named barrier its number
    int threads = 0;
  };
  std::vector<Wait> waits_;  ///< by thread
  std::vector<State> states_;
  std::vector<unsigned> ready_;
  std::vector<char> slots_;

  uint64_t draw() {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_;
  }

  /// Any thread, or (in every other block, by lot) one of the warp that ran last: a warp then runs as far as barriers
  /// let it before another has begun.
  size_t choose() {
    const size_t start = draw() % ready_.size();
    if (!by_warp_) return start;
    const auto of_same_warp = [&](unsigned thread) { return thread / kWarp == current_ / kWarp; };
    const auto from = ready_.begin() + static_cast<std::ptrdiff_t>(start);
    auto found = std::find_if(from, ready_.end(), of_same_warp);
    if (found == ready_.end()) found = std::find_if(ready_.begin(), from, of_same_warp);
    return found != ready_.end() && of_same_warp(*found) ? static_cast<size_t>(found - ready_.begin()) : start;
  }

  void try_release_warp(unsigned warp, State state) {
    const unsigned first = warp * kWarp,
                   last = std::min<unsigned>(first + kWarp, static_cast<unsigned>(states_.size()));
    for (unsigned i = first; i < last; ++i)
      if (states_[i] != state) return;
    if (state == State::at_warp_barrier) races_.warp_barrier(warp);
    for (unsigned i = first; i < last; ++i) {
      states_[i] = State::runnable;
      ready_.push_back(i);
    }
  }

  void make_ready(unsigned thread) {
    states_[thread] = State::runnable;
    ready_.push_back(thread);
  }

  void check_bulk() const {
    if (!bulk_.found().empty()) throw EmulationError{bulk_.found()};
  }

  /// Those whose phase has ended.
  void wake() {
    check_bulk();
    if (!bulk_.take_changed()) return;
    for (unsigned i = 0; i < states_.size(); ++i)
      if (states_[i] == State::at_phase && bulk_.passed(waits_[i].barrier, waits_[i].number)) make_ready(i);
  }

  bool any(State state) const { return std::find(states_.begin(), states_.end(), state) != states_.end(); }

  /// Nobody can run: all wait at the block's barrier, or for a copy.
  void release() {
    const bool all = std::all_of(states_.begin(), states_.end(), [](State s) { return s == State::at_barrier; });
    if (!all && bulk_.under_way()) {
      bulk_.land_one();
      return wake();
    }
    if (any(State::at_phase)) throw EmulationError{"threads wait for a phase of a barrier that nobody ends"};
    if (any(State::at_named_barrier)) throw EmulationError{"a named barrier waits for threads that are elsewhere"};
    for (size_t i = 0; i < states_.size(); ++i)
      if (states_[i] != State::at_barrier)
        throw EmulationError{states_[i] == State::ended
                                 ? "threads of a block wait at a barrier that another thread has ended without"
                                 : "a warp exchange or barrier waits for threads that are elsewhere"};
    races_.block_barrier();
    for (unsigned i = 0; i < states_.size(); ++i) {
      states_[i] = State::runnable;
      ready_.push_back(i);
    }
  }
};

/// Shared memory that a launch gives, with a guard behind it.
class LaunchShared {
 public:
  explicit LaunchShared(size_t size) : size_(size), memory_((size + kGuard + 15) / 16) {
    std::memset(bytes() + size_, kGuardByte, kGuard);
  }
  unsigned char* bytes() { return reinterpret_cast<unsigned char*>(memory_.data()); }
  void poison() { std::memset(bytes(), kPoison, size_); }
  void check() {
    for (size_t i = 0; i < kGuard; ++i)
      if (bytes()[size_ + i] != kGuardByte) throw EmulationError{"a write behind the shared memory of the launch"};
  }

 private:
  static constexpr size_t kGuard = 256;
  static constexpr unsigned char kGuardByte = 0xA5;
  struct alignas(16) Line {
    unsigned char bytes[16];
  };
  size_t size_;
  std::vector<Line> memory_;
};

/// Blocks of this thread that are under way: a launch may run the one that it waits for.
struct ThreadBlocks {
  std::vector<std::unique_ptr<Block>> blocks;
  size_t running = 0;
};
ThreadBlocks& blocks_of_this_thread() {
  thread_local ThreadBlocks blocks;
  return blocks;
}
Block& block_of_this_thread() {
  ThreadBlocks& b = blocks_of_this_thread();
  return *b.blocks[b.running - 1];
}

/// The block of a launch, as long as it runs.
class RunningBlock {
 public:
  RunningBlock() {
    ThreadBlocks& b = blocks_of_this_thread();
    if (b.running == b.blocks.size()) b.blocks.push_back(std::make_unique<Block>());
    ++b.running;
  }
  RunningBlock(const RunningBlock&) = delete;
  RunningBlock& operator=(const RunningBlock&) = delete;
  ~RunningBlock() { --blocks_of_this_thread().running; }
};

void view_copy_engine(EmulatedThread& view) {
  view.make_barrier = [](const void* barrier, int arrivals) {
    Block& b = block_of_this_thread();
    b.bulk().make_barrier(b.current(), barrier, arrivals);
    b.after_bulk();
  };
  view.barriers_are_visible = [] {
    Block& b = block_of_this_thread();
    b.bulk().barriers_are_visible(b.current());
  };
  view.arrive = [](const void* barrier, long long bytes) {
    Block& b = block_of_this_thread();
    b.bulk().arrive(b.current(), barrier, bytes);
    b.after_bulk();
  };
  view.wait_phase = [](const void* barrier, int parity) { block_of_this_thread().wait_phase(barrier, parity); };
  view.load_box = [](void* to, const void* map, const int* at, int rank, const unsigned short* window,
                     const void* barrier) {
    Block& b = block_of_this_thread();
    BulkCopies::Place place{{}, {}, rank};
    std::copy(at, at + rank, place.at);
    if (window) std::copy(window, window + rank - 2, place.window);
    b.bulk().load(b.current(), to, map, place, barrier);
    b.after_bulk();
  };
  view.store_box = [](const void* map, const int* at, int rank, const void* from) {
    Block& b = block_of_this_thread();
    BulkCopies::Place place{{}, {}, rank};
    std::copy(at, at + rank, place.at);
    b.bulk().store(b.current(), map, place, from);
    b.after_bulk();
  };
  view.store_commit = [] {
    Block& b = block_of_this_thread();
    b.bulk().commit(b.current());
  };
  view.store_wait = [](int pending) { block_of_this_thread().wait_stores(pending); };
  view.named_barrier = [](int id, int threads) { block_of_this_thread().wait_named(id, threads); };
}

}  // namespace

EmulatedModule::EmulatedModule(std::span<const uint8_t> image) {
  try {
    load(image);
  } catch (const EmulationError&) {
    unload();
    throw;
  }
}

EmulatedModule::~EmulatedModule() { unload(); }

void EmulatedModule::unload() {
  if (library_) dlclose(library_);
  if (fd_ >= 0) close(fd_);
}

void EmulatedModule::load(std::span<const uint8_t> image) {
  fd_ = memfd_create("opfuse-emulated-kernels", MFD_CLOEXEC);
  if (fd_ < 0) throw EmulationError{"no memory file for emulated kernels"};
  size_t written = 0;
  while (written < image.size()) {
    const ssize_t n = write(fd_, image.data() + written, image.size() - written);
    if (n <= 0) break;
    written += static_cast<size_t>(n);
  }
  if (written < image.size()) throw EmulationError{"the memory file for emulated kernels could not be written"};
  library_ = dlopen(("/proc/self/fd/" + std::to_string(fd_)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_) throw EmulationError{std::string("emulated kernels could not be loaded: ") + dlerror()};
  using Bind = void (*)(EmulatedThread*, char**, char**);
  const auto bind = reinterpret_cast<Bind>(dlsym(library_, "opfuse_emulation_bind"));
  if (!bind) throw EmulationError{"the image holds no emulated kernels"};
  bind(nullptr, &shared_begin_, &shared_end_);
}

EmulatedModule::Kernel EmulatedModule::find(const std::string& name) const {
  return reinterpret_cast<Kernel>(dlsym(library_, (name + "_emulated").c_str()));
}

std::vector<size_t> EmulatedModule::arguments(const std::string& name) const {
  const auto* bytes = static_cast<const unsigned*>(dlsym(library_, (name + "_arguments").c_str()));
  if (!bytes) throw EmulationError{"the image does not say what arguments " + name + " takes"};
  std::vector<size_t> list;
  for (; *bytes; ++bytes) list.push_back(*bytes);
  return list;
}

namespace {

EmulatedThread view_of(const EmulatedLaunch& shape, unsigned char* shared) {
  EmulatedThread view;
  view.block_size = shape.block;
  view.grid_size = shape.grid;
  view.launch_shared = shared;
  view.launch_shared_bytes = shape.shared;
  view.barrier = [] { block_of_this_thread().wait(State::at_barrier); };
  view.warp_barrier = [] { block_of_this_thread().wait(State::at_warp_barrier); };
  view.exchange = [] { block_of_this_thread().wait(State::at_exchange); };
  view.fault = [] { block_of_this_thread().fault("a misaligned vector access, or too many copies under way"); };
  view.touched = [](const void* at, unsigned bytes, int how) {
    block_of_this_thread().touched(at, bytes, static_cast<SharedRaces::Access>(how));
  };
  view.slot = [](int lane) { return block_of_this_thread().slot(lane); };
  view.wait_for_earlier = [] { block_of_this_thread().wait_earlier(); };
  view_copy_engine(view);
  return view;
}

}  // namespace

void EmulatedModule::launch(Kernel kernel, const EmulatedLaunch& shape, void** arguments, uint64_t seed,
                            const std::function<void()>& earlier) const {
  const std::lock_guard lock(running_);
  const RunningBlock running;
  LaunchShared given(shape.shared);
  EmulatedThread view = view_of(shape, given.bytes());
  const auto bind = [&] {
    char *begin = nullptr, *end = nullptr;
    reinterpret_cast<void (*)(EmulatedThread*, char**, char**)>(dlsym(library_, "opfuse_emulation_bind"))(&view, &begin,
                                                                                                          &end);
  };
  bind();
  bool done = !earlier;
  // It may be of this library too, whose statics it leaves as they are now.
  const std::function<void()> run_earlier = [&] {
    if (std::exchange(done, true)) return;
    const std::vector<char> arrays(shared_begin_, shared_end_);
    earlier();
    std::copy(arrays.begin(), arrays.end(), shared_begin_);
    bind();
  };
  for (unsigned i = 0; i < shape.grid; ++i) {
    const auto b = static_cast<unsigned>((i + (earlier ? seed : 0)) % shape.grid);
    std::memset(shared_begin_, kPoison, static_cast<size_t>(shared_end_ - shared_begin_));
    given.poison();
    view.block = b;
    static std::atomic<unsigned long long> epochs{0};
    view.epoch = ++epochs;
    view.lot = seed + b;
    const auto* launch = reinterpret_cast<const char*>(given.bytes());
    block_of_this_thread().run(kernel, view, shape.block, arguments, seed + b, {shared_begin_, shared_end_},
                               {launch, launch + shape.shared}, run_earlier);
    given.check();
  }
  run_earlier();  // a kernel that has not waited
}

}  // namespace opfuse::cuda
