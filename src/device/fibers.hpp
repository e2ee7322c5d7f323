// Fibers: functions with stacks of their own that hand control to each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace opfuse::cuda {

/// A block's worth of fibers, reused from block to block. One thread of the host at a time.
class Fibers {
 public:
  Fibers();
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;
  using Entry = void (*)(void* context);
  /// Makes fibers 0..count-1 ready to start in `entry`.
  void start(size_t count, Entry entry, void* context);
  /// Runs fiber `index` until it yields or ends; true when it ended.
  bool resume(size_t index);
  /// From within a fiber: back to resume().
  void yield();

 private:
  struct Stack {
    char* memory = nullptr;
    void* pointer = nullptr;
    void* fake_stack = nullptr;
    bool ended = false;
  };
  static constexpr size_t kStackBytes = size_t{256} << 10;
  std::vector<Stack> stacks_;
  void* host_pointer_ = nullptr;
  const void* host_stack_ = nullptr;
  size_t host_stack_bytes_ = 0;
  size_t current_ = 0;
  Entry entry_ = nullptr;
  void* context_ = nullptr;
  static void begin(Fibers* self);
  void leave(bool ending);
};

}  // namespace opfuse::cuda
