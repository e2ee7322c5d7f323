// The scheduler of an emulated block, and the loading of emulated kernels.
#include "device/emulation.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "base/fail.hpp"
#include "device/fibers.hpp"
#include "device/shared_races.hpp"

namespace opfuse::cuda {
namespace {

constexpr size_t kSlotBytes = 1024;
constexpr unsigned kWarp = 32;
constexpr unsigned char kPoison = 0xFF;  ///< NaN in every float format

/// A warp exchanges (shuffles, matrices) without ordering memory; a warp's barrier orders it.
enum class State : char { runnable, at_barrier, at_exchange, at_warp_barrier, ended };

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
           SharedRange arrays, SharedRange given) {
    arrays_ = arrays;
    given_ = given;
    races_.start(size, arrays.bytes() + given.bytes());
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
      if (ready_.empty()) release();
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
    }
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
      races_.touch(current_, arrays_.bytes() + static_cast<size_t>(at - given_.begin), bytes, how);
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
  SharedRaces races_;
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
    for (size_t i = 0; i < ready_.size(); ++i)
      if (const size_t at = (start + i) % ready_.size(); ready_[at] / kWarp == current_ / kWarp) return at;
    return start;
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

  /// Nobody can run: all must wait at the block's barrier.
  void release() {
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

Block& block_of_this_thread() {
  thread_local Block block;
  return block;
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

size_t EmulatedModule::arguments(const std::string& name) const {
  const auto* count = static_cast<const unsigned*>(dlsym(library_, (name + "_arguments").c_str()));
  if (!count) throw EmulationError{"the image does not say what arguments " + name + " takes"};
  return *count;
}

void EmulatedModule::launch(Kernel kernel, unsigned grid, unsigned block, size_t shared, void** arguments,
                            uint64_t seed) const {
  const std::lock_guard lock(running_);
  LaunchShared given(shared);
  EmulatedThread view;
  view.block_size = block;
  view.grid_size = grid;
  view.launch_shared = given.bytes();
  view.launch_shared_bytes = shared;
  view.barrier = [] { block_of_this_thread().wait(State::at_barrier); };
  view.warp_barrier = [] { block_of_this_thread().wait(State::at_warp_barrier); };
  view.exchange = [] { block_of_this_thread().wait(State::at_exchange); };
  view.fault = [] { block_of_this_thread().fault("a misaligned vector access, or too many copies under way"); };
  view.touched = [](const void* at, unsigned bytes, int how) {
    block_of_this_thread().touched(at, bytes, static_cast<SharedRaces::Access>(how));
  };
  view.slot = [](int lane) { return block_of_this_thread().slot(lane); };
  char *begin = nullptr, *end = nullptr;
  reinterpret_cast<void (*)(EmulatedThread*, char**, char**)>(dlsym(library_, "opfuse_emulation_bind"))(&view, &begin,
                                                                                                        &end);
  for (unsigned b = 0; b < grid; ++b) {
    std::memset(shared_begin_, kPoison, static_cast<size_t>(shared_end_ - shared_begin_));
    given.poison();
    view.block = b;
    static std::atomic<unsigned long long> epochs{0};
    view.epoch = ++epochs;
    view.lot = seed + b;
    const auto* launch = reinterpret_cast<const char*>(given.bytes());
    block_of_this_thread().run(kernel, view, block, arguments, seed + b, {shared_begin_, shared_end_},
                               {launch, launch + shared});
    given.check();
  }
}

}  // namespace opfuse::cuda
