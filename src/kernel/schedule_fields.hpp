// Schedules as structs: a skeleton's struct lists its numbers once, and writing, reading and verifying follow.
//
//   struct WindowSchedule : Parts {
//     int64_t tile_w = 1;  // always there
//     Given<0> rest;       // may be left out, and then is 0
//     template <class Self, class F>
//     static void each(Self& self, F&& field) {
//       field("tile_w", self.tile_w, Range{1, 64});
//       field("rest", self.rest, kFlag);
//       Parts::each(self, field);
//     }
//   };
//
// Programs, artifacts and caches carry the erased form (program/schedule.hpp); who schedules, emits and predicts has
// the struct.
#pragma once

#include <limits>
#include <optional>
#include <string>

#include "program/schedule.hpp"

namespace opfuse {

/// What a number may be.
struct Range {
  int64_t least = 1, most = std::numeric_limits<int64_t>::max();
};
inline constexpr Range kFlag{0, 1};

/// A number that a schedule may leave out.
template <int64_t Otherwise>
class Given {
 public:
  Given() = default;
  Given(int64_t value) : value_(value), given_(true) {}
  operator int64_t() const { return value_; }
  bool given() const { return given_; }

 private:
  int64_t value_ = Otherwise;
  bool given_ = false;
};

template <class T>
Schedule erased(std::string_view skeleton, const T& typed) {
  Schedule schedule{std::string(skeleton), {}};
  T::each(typed, [&](std::string_view name, const auto& value, Range) {
    if constexpr (requires { value.given(); })
      if (!value.given()) return;
    schedule.set(name, value);
  });
  return schedule;
}

/// What a verified schedule holds.
template <class T>
T typed(const Schedule& schedule) {
  T value;
  T::each(value, [&](std::string_view name, auto& field, Range) {
    if (const int64_t* found = schedule.find(name)) field = *found;
  });
  return value;
}

/// One field after another against a schedule's numbers.
class FieldCheck {
 public:
  explicit FieldCheck(const Schedule& schedule) : schedule_(schedule) {}
  void field(std::string_view name, bool required, Range range);
  /// Why the schedule has not these fields, with the name of the first that is wrong; nullopt: it has.
  std::optional<std::string> result() const;

 private:
  const Schedule& schedule_;
  std::string why_;
  std::vector<std::string_view> known_;
};

template <class T>
std::optional<std::string> verify_fields(const Schedule& schedule) {
  FieldCheck check(schedule);
  T fields;
  T::each(fields, [&](std::string_view name, auto& value, Range range) {
    check.field(
        name, !requires { value.given(); }, range);
  });
  return check.result();
}

}  // namespace opfuse
