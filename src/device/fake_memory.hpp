// Memory of the fake driver's devices: the host's own, which host code cannot touch while nothing runs on a device.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>

#include "device/driver.hpp"

namespace opfuse::cuda {

/// Pages of its own for each allocation, its end in front of a page that nobody may touch. They are open between
/// `open` and `close`, while kernels and copies run; at other times a host that reads or writes them is stopped there.
class FakeMemory {
 public:
  struct Allocation {
    CuPointer start = 0;
    size_t bytes = 0;
    int device = 0;
    char* pages = nullptr;
    size_t page_bytes = 0;  ///< without the guard
  };
  /// 0: the system has no more.
  CuPointer allocate(size_t bytes, int device);
  bool free(CuPointer start);
  bool covers(CuPointer at, size_t bytes);
  std::optional<Allocation> find(CuPointer at);  ///< the one around an address
  size_t live();

  void open();
  void close();

 private:
  std::mutex mutex_;
  std::map<CuPointer, Allocation> allocations_;
  int users_ = 0;  ///< that have opened it

  void protect(const Allocation& a) const;
};

}  // namespace opfuse::cuda
