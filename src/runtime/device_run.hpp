// What one context keeps on a GPU, and how it runs there: copies in, launches, copies out, in the order of one stream.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "runtime/device.hpp"

namespace opfuse {

class DeviceRun {
 public:
  /// Graphs that are kept, each for its own addresses. One more, and the one that ran longest ago is made anew.
  static constexpr size_t kMostGraphs = 8;

  explicit DeviceRun(std::shared_ptr<const DeviceProgram> program);
  ~DeviceRun();
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;

  /// Sizes of the runs to come, and where their arrays lie: `device` of a view says whose memory that is.
  void prepare(const SymbolValues& symbols, const std::vector<int64_t>& symbol_list, size_t arena_bytes,
               std::span<const ArrayView> inputs, std::span<const ArrayView> outputs);
  /// Memory of its own for an output that stays on the device.
  void* own_output(size_t output, size_t bytes);

  struct How {
    bool on_stream = false;                                         ///< of the caller, and without waiting
    cuda::CuStream stream = nullptr;                                ///< the default stream, where null
    std::vector<int64_t>* launch_ns = nullptr;                      ///< every launch is timed by events; waits
    const std::function<bool(size_t, size_t)>* progress = nullptr;  ///< before each launch, which is waited for
  };
  void run(const How& how);
  void wait();  ///< for the last run

  const DeviceProgram& program() const { return *program_; }
  /// For tests and reports: how often the launches were given one by one, captured, and replayed.
  struct Counts {
    int64_t direct = 0, captured = 0, replayed = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  /// Launches with the addresses of their operands, and their graph.
  struct Bound {
    std::vector<cuda::CuPointer> key;  ///< arena, inputs, outputs, sizes
    SymbolValues symbols;
    std::vector<int64_t> symbol_list;
    std::vector<std::vector<cuda::CuPointer>> pointers;  ///< by launch
    std::vector<std::vector<cuda::CuTensorMap>> maps;    ///< by launch
    DeviceGraphExec graph;
    bool ran = false;
    explicit Bound(const cuda::Driver& driver) : graph(driver) {}
  };
  struct Slot {  ///< an input or output
    ArrayView array;
    DeviceMemory own;
    size_t bytes = 0;
    bool resident() const { return array.device >= 0; }
    cuda::CuPointer address() const {
      return resident() ? static_cast<cuda::CuPointer>(reinterpret_cast<uintptr_t>(array.data)) : own.address();
    }
  };
  std::shared_ptr<const DeviceProgram> program_;
  DeviceMemory arena_;
  std::vector<Slot> inputs_, outputs_;
  std::vector<DeviceMemory> results_;  ///< outputs that stay
  size_t arena_bytes_ = 0;
  SymbolValues symbols_;
  std::vector<int64_t> symbol_list_;
  std::list<Bound> bound_;  ///< the one that ran last in front
  DeviceStream stream_;
  std::vector<DeviceEvent> events_;
  DeviceEvent last_;                 ///< the end of the last run
  bool under_way_ = false;           ///< that run may not have ended
  bool captured_by_caller_ = false;  ///< a graph of the caller's has these addresses
  Counts counts_;

  void wait_for_last();
  void replace(DeviceMemory& memory, size_t bytes);
  void reserve(bool capturing);
  Bound& bind_addresses();
  cuda::CuPointer address_of(const ArtifactBuffer& buffer) const;
  void copy_in(cuda::CuStream stream);
  void copy_out(cuda::CuStream stream);
  void give(const How& how, cuda::CuStream stream, bool capturing);
  void launch_all(Bound& b, cuda::CuStream stream, bool capturing);
  void launch_each(const Bound& b, cuda::CuStream stream) const;
  void capture(Bound& b);
  void time_each(const Bound& b, const How& how, cuda::CuStream stream);
  bool is_capturing(cuda::CuStream stream) const;
  void check_capturing(const How& how) const;
};

}  // namespace opfuse
