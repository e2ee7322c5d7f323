// Streams, events and graphs of the fake driver. What a stream is given runs as late as a device may run it: when
// somebody waits for it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "device/driver.hpp"
#include "device/fake_memory.hpp"

namespace opfuse::cuda {

enum FakeResult : CuResult {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kLaunchFailed = 719,
  kCaptureUnsupported = 900,
  kInvalidClusterSize = 912
};

/// Work of a stream. A programmatic launch may begin before the one in front of it: it is given that as `earlier`,
/// to be run when it waits for it.
struct FakeStep {
  std::function<CuResult(const std::function<CuResult()>& earlier)> run;
  bool launch = false, programmatic = false;
  bool mark = false;  ///< runs behind what has failed, too
};

struct CuContextHandle {
  int device = 0;
};
struct CuGraphHandle {
  std::vector<FakeStep> steps;
};
struct CuGraphExecHandle {
  std::shared_ptr<const std::vector<FakeStep>> steps;
};
struct CuStreamHandle {
  CuContext context = nullptr;
  bool blocking = false;                    ///< waits for the default stream, which waits for it
  std::vector<FakeStep> queue;              ///< in order
  CuResult failed = kSuccess;               ///< of work that ran meanwhile
  std::string why;                          ///< its words
  std::unique_ptr<CuGraphHandle> captured;  ///< set while capturing
};
/// A point in a stream.
struct FakeMark {
  CuStream stream = nullptr;
  bool reached = false;
  std::chrono::steady_clock::time_point time{};
};
struct CuEventHandle {
  std::shared_ptr<FakeMark> mark;
};

/// Live handles and memory of the fake devices.
class FakeDevices {
 public:
  static constexpr int kCount = 2;
  static FakeDevices& get();

  FakeMemory memory;
  CuContextHandle contexts[kCount];

  template <class T>
  T* add(std::unique_ptr<T> handle) {
    const std::lock_guard lock(mutex_);
    handles_.insert(handle.get());
    return handle.release();
  }
  bool known(const void* handle) {
    const std::lock_guard lock(mutex_);
    return handles_.count(handle) > 0;
  }
  template <class T>
  CuResult remove(T* handle) {
    {
      const std::lock_guard lock(mutex_);
      if (handles_.erase(handle) == 0) return kInvalidHandle;
    }
    delete handle;
    return kSuccess;
  }
  CuResult retain();
  CuResult release();
  size_t live();

  /// The stream that a caller means: its own, or the default one of the current context. Null: none.
  CuStream stream(CuStream named);
  CuResult submit(CuStream named, FakeStep step);
  /// Runs what streams were given: all of one, up to a mark, or of all.
  CuResult drain(CuStream stream);
  void drain(const FakeMark& mark);
  void drain_all();
  void forget(CuStream stream);
  void remember(CuStream stream);

 private:
  std::mutex mutex_;  ///< of the handles
  std::set<const void*> handles_;
  size_t retained_ = 0;           ///< times that a context was
  std::recursive_mutex streams_;  ///< one thread gives work, or runs it
  std::vector<CuStream> all_streams_;
  CuStreamHandle default_streams_[kCount];

  FakeDevices();
  void run(CuStream stream, const FakeMark* until);
};

CuContext& fake_current_context();  ///< of the calling thread
std::string& fake_failure();        ///< the words of the calling thread's last one
int& fake_captures();               ///< that the calling thread has begun, and that forbid some calls

/// The functions of streams, events and graphs.
void add_fake_streams(Driver& d);

}  // namespace opfuse::cuda
