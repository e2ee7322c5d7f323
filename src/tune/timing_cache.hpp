// Times that were measured, in a file that merges and travels: a key says what was run and where, without the schedule;
// its values say in which form, and how long that took.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace opfuse {

/// Equal keys are comparable times.
struct TimingKey {
  std::string region;   ///< hash of the region (its shapes are part of it), or of the regions in order
  std::string layouts;  ///< of its operands, as the program has them
  std::string machine;  ///< processor, target, threads
  auto operator<=>(const TimingKey&) const = default;
};

struct Timing {
  std::string form;       ///< "fused", "split"; a tuner's: its schedule
  double median = 0;      ///< microseconds
  double spread = 0;      ///< half of the distance between the quartiles, of the median
  int64_t count = 0;      ///< runs
  std::string generator;  ///< fingerprint of the build whose code ran
  bool operator==(const Timing&) const = default;
};

class TimingCache {
 public:
  /// `$XDG_CACHE_HOME/opfuse/timings.json` or `~/.cache/opfuse/timings.json`; "" where there is no home.
  static std::string default_file();
  /// What is in the file; nothing where there is none. E::bad_file for one that is not a cache, with what to do.
  static TimingCache read(const std::string& file);

  /// The form that this build ran in least time, and all that it has times of; null where there is none. Times of other
  /// builds are hints: `hint`, never a verdict.
  const Timing* find(const TimingKey& key, const std::string& form, const std::string& generator) const;
  const Timing* hint(const TimingKey& key, const std::string& form) const;
  /// Of the forms that begin with `prefix`, the one that this build ran in least time; null: it ran none.
  const Timing* fastest(const TimingKey& key, const std::string& prefix, const std::string& generator) const;
  /// Whether a form that begins with `prefix` was measured by another build, or on another machine.
  bool measured_elsewhere(const TimingKey& key, const std::string& prefix, const std::string& generator) const;
  /// Takes the place of what the same build measured of the same form, where it has as many runs.
  void add(const TimingKey& key, const Timing& timing);
  void merge(const TimingCache& other);
  size_t size() const;
  bool operator==(const TimingCache&) const = default;

  std::string json() const;  ///< "opfuse.timings/1"; equal caches are equal texts
  static TimingCache from_json(std::string_view text);
  /// Merged with what the file holds meanwhile, complete or not at all. E::file_write_failed.
  void write(const std::string& file) const;

 private:
  std::map<TimingKey, std::vector<Timing>> entries_;
};

}  // namespace opfuse
