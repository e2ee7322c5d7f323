// Loops over domain axes in memory order, split into parts: leading axes are flattened and dealt out,
// one axis is cut into ranges, the rest runs inside.
#pragma once

#include "cpu/emit/stage.hpp"

namespace opfuse::cpu {

/// Whether an extent, open ones too, is whole multiples.
inline bool divides(int64_t n, const Dim& extent) { return mod(extent, Dim(n)) == Dim(0); }

/// One loop. A lane axis advances by the vector width; its tail runs under a mask.
struct Level {
  int axis = 0;
  bool lanes = false;
  Dim extent = 1;     ///< of the axis
  int64_t block = 1;  ///< lanes are stored in blocks of this: trips cover whole blocks
  int64_t tile = 1;   ///< of the last level: iterations (vectors, of lanes) that one call of the body makes (Env::tile)
  int64_t strip = 0;  ///< vectors of whole tiles, at most, that one call of the body makes (Env::strip); 0: one tile
  /// A few trips one by one, so that what a body asks of its place is known in each.
  bool unrolled = false;
  std::optional<AxisRange> interior;  ///< in which no guard asks for the axis: a loop of its own
};

class Nest {
 public:
  using Body = std::function<void(const Env&)>;
  Nest(Kernel& k, std::vector<Level> levels, int width) : k_(k), levels_(std::move(levels)), width_(width) {}

  /// Emits this part's share; sets Kernel::parts. `work`: scalar operations in the whole nest.
  void emit_parts(const Env& start, const Dim& work, const Body& body);
  /// Emits [begin, end) of the first level, and all of those inside.
  void emit_range(const Env& start, Value* begin, Value* end, const Body& body) { run(0, begin, end, start, body); }
  /// Emits all of it.
  void emit_all(const Env& start, const Body& body);

 private:
  Kernel& k_;
  std::vector<Level> levels_;
  int width_;

  Dim wanted_parts(const Dim& work) const;
  Dim trips(const Level& level) const;
  Value* full_trips(const Level& level);
  void at_trip(const Level& level, Value* trip, const Env& env, const Body& body);
  void run(size_t index, Value* begin, Value* end, const Env& env, const Body& body);
  void run_tiles(const Level& level, Value* begin, Value* end, const Env& env, const Body& body);
  void run_interior(size_t index, Value* begin, Value* end, const Env& env, const Body& body);
  void run_vectors(size_t index, Value* begin, Value* end, const Env& env, const Body& body);
  void run_from(size_t index, const Env& env, const Body& body);
};

/// As kNestGrain, where a schedule names the threads.
inline constexpr int64_t kGrainOfMany = 1 << 13;

}  // namespace opfuse::cpu
