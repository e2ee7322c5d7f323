// The arena plan. A root buffer lives from the first launch that touches it (through any view) to the
// last. Buffers are placed one after another, each in the smallest gap between already placed buffers that live at
// the same time (best fit), 64-byte aligned, in several orders, and again with those that reached the highest address
// moved to the front, until the arena is as small as the launch that needs most, or a number of attempts is spent. What
// has a place then is moved to memory that was touched a short while ago (hot_places.hpp).
//
// Symbolic sizes: when every symbolic size is a constant multiple of one symbol (an unbound batch), the
// multiples are planned like constants and scaled; other symbolic sizes share a place only with equal
// sizes that live at other times. Constant sizes lie before symbolic ones. Each level of sizes that a run finds has an
// arena of its own (levels.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/fail.hpp"
#include "program/hot_places.hpp"
#include "program/levels.hpp"

namespace opfuse {

std::vector<Lifetime> lifetimes(const Program& program) {
  std::vector<Lifetime> lives(program.buffers.size());
  const std::vector<int> roots = roots_of(program);
  for (size_t l = 0; l < program.launches.size(); ++l)
    for (int buffer : program.launches[l].buffers) {
      if (buffer < 0) continue;
      Lifetime& life = lives[static_cast<size_t>(roots[static_cast<size_t>(buffer)])];
      if (life.first < 0) life.first = static_cast<int>(l);
      life.last = static_cast<int>(l);
    }
  // what a body shares with what is outside, and all that its steps may find again, is there from its first run to its
  // last
  for (const Body& body : program.bodies)
    for (Lifetime& life : lives) {
      const int end = body.first + body.launches - 1;
      if (life.first < 0 || life.last < body.first || life.first > end) continue;
      const bool inside = life.first >= body.first && life.last <= end;
      if (inside && body.kind == BodyKind::parts) continue;
      life.first = std::min(life.first, body.first);
      life.last = std::max(life.last, end);
    }
  return lives;
}

namespace {

constexpr int64_t kAlignment = 64;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Maps of whole half pages, one behind the other, would begin in the same sets of L1, and a load would wait for a
/// store to the same place of another page: what a launch walks through side by side begins some lines apart.
int64_t staggered(int64_t bytes) {
  constexpr int64_t kHalfPage = 2048, kSmall = 8 * kHalfPage, kLines = 9;
  return bytes >= kSmall && bytes % kHalfPage == 0 ? bytes + kLines * kAlignment : bytes;
}

using Item = ArenaItem;

bool overlap(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

/// The smallest gap that holds `item` among placed items alive with it; the end when there is none.
int64_t best_gap(const Item& item, const std::vector<Item>& placed) {
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (const Item& other : placed)
    if (overlap(item.life, other.life)) taken.emplace_back(other.offset, other.offset + other.bytes);
  std::sort(taken.begin(), taken.end());
  int64_t end = 0, best = -1, best_size = 0;
  for (const auto& [from, to] : taken) {
    const int64_t gap = from - end;
    if (gap >= item.bytes && (best < 0 || gap < best_size)) best = end, best_size = gap;
    end = std::max(end, to);
  }
  return best >= 0 ? best : end;
}

/// Bytes alive together at the launch that needs most: no plan is smaller.
int64_t least_bytes(const std::vector<Item>& items) {
  std::vector<std::pair<int, int64_t>> changes;  // what a launch begins with, more or less than the one before
  for (const Item& item : items) {
    changes.emplace_back(item.life.first, item.bytes);
    changes.emplace_back(item.life.last + 1, -item.bytes);
  }
  std::sort(changes.begin(), changes.end());  // what ends comes first
  int64_t alive = 0, most = 0;
  for (const auto& [launch, bytes] : changes) most = std::max(most, alive += bytes);
  return most;
}

/// Places the items in that order; returns the bytes they need.
int64_t place_in_order(const std::vector<Item*>& order) {
  std::vector<Item> placed;
  int64_t total = 0;
  for (Item* item : order) {
    item->offset = best_gap(*item, placed);
    total = std::max(total, item->offset + item->bytes);
    placed.push_back(*item);
  }
  return total;
}

/// What an order of placement sorts by, greatest first.
using Weight = int64_t (*)(const Item&);
constexpr Weight kWeights[] = {
    [](const Item& item) { return item.bytes; },
    [](const Item& item) { return item.bytes * (item.life.last - item.life.first + 1); },
    [](const Item& item) { return int64_t{item.life.last} - item.life.first; },
};
constexpr size_t kAttempts = 40;  // per order

/// Attempts per order for so many buffers, each of which is compared with those placed before. By default a thousand
/// buffers still get all of theirs.
size_t attempts_for(size_t buffers, int64_t most_comparisons) {
  const size_t comparisons = std::max<size_t>(buffers * buffers / 2 * std::size(kWeights), 1);
  return std::clamp<size_t>(static_cast<size_t>(most_comparisons) / comparisons, 1, kAttempts);
}

struct Placed {
  int64_t bytes = 0, least = 0;  ///< needed; alive together at some launch
  size_t attempts = 0;           ///< per order, of kAttempts
};

/// Places all items.
Placed place(std::vector<Item>& items, int64_t most_comparisons) {
  const int64_t least = least_bytes(items);
  const size_t attempts = attempts_for(items.size(), most_comparisons);
  int64_t best = -1;
  std::vector<Item*> best_order, order;
  for (Item& item : items) order.push_back(&item);
  for (const Weight weight : kWeights) {
    std::sort(order.begin(), order.end(), [&](const Item* a, const Item* b) {
      return weight(*a) != weight(*b) ? weight(*a) > weight(*b) : a->buffer < b->buffer;
    });
    for (size_t attempt = 0; attempt < attempts && best != least; ++attempt) {
      const int64_t total = place_in_order(order);
      if (best < 0 || total < best) best = total, best_order = order;
      std::stable_partition(order.begin(), order.end(),
                            [&](const Item* item) { return item->offset + item->bytes == total; });
    }
  }
  place_in_order(best_order);
  move_to_hot_places(items);
  return {std::max<int64_t>(best, 0), least, attempts};
}

/// size / symbol when that is a constant.
std::optional<int64_t> multiple_of(const Dim& size, const Dim& symbol) {
  const Dim quotient = floor_div(size, symbol);
  if (!quotient.is_constant() || !(quotient * symbol == size)) return std::nullopt;
  return quotient.value();
}

class Planner {
 public:
  Planner(Program& program, int64_t most_comparisons)
      : program_(program), lives_(lifetimes(program)), levels_(program), most_comparisons_(most_comparisons) {}

  void run() {
    program_.intermediate_bytes = 0;
    program_.arena_bytes = run(0);
    for (int level = 1; level <= levels_.count(); ++level) run(level);
  }

 private:
  Program& program_;
  std::vector<Lifetime> lives_;
  Levels levels_;
  int64_t most_comparisons_;

  /// Places what is in that level's arena; its bytes.
  Dim run(int level) {
    std::vector<int> fixed, symbolic;
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const Buffer& buffer = program_.buffers[i];
      if (buffer.kind != BufferKind::intermediate || buffer.view_of >= 0 || lives_[i].first < 0) continue;
      const Dim bytes = bytes_of(buffer);
      if (levels_.of(bytes) != level) continue;
      program_.intermediate_bytes = program_.intermediate_bytes + bytes;
      (bytes.is_constant() ? fixed : symbolic).push_back(static_cast<int>(i));
    }
    const Dim arena = place_scaled(fixed, Dim(1), Dim(0));
    if (symbolic.empty()) return arena;
    std::set<std::string> symbols;
    for (int buffer : symbolic) bytes_of(program_.buffers[static_cast<size_t>(buffer)]).collect_symbols(symbols);
    const Dim symbol = Dim::symbol(*symbols.begin());
    const bool one = symbols.size() == 1 && std::all_of(symbolic.begin(), symbolic.end(), [&](int b) {
                       return multiple_of(bytes_of(program_.buffers[static_cast<size_t>(b)]), symbol).has_value();
                     });
    return one ? place_scaled(symbolic, symbol, arena) : place_equal_sizes(symbolic, arena);
  }

  /// The limit kept orders out that may have needed less.
  void note_limit(const Placed& placed, size_t buffers) {
    if (placed.attempts == kAttempts || placed.bytes <= placed.least) return;
    std::string note = fmt::format(
        "arena: {} of {} tries per order for {} buffers, {:.1f} % above the least (--limit arena_comparisons=N)",
        placed.attempts, kAttempts, buffers,
        100 * (static_cast<double>(placed.bytes) / static_cast<double>(placed.least) - 1));
    if (std::find(program_.notes.begin(), program_.notes.end(), note) == program_.notes.end())
      program_.notes.push_back(std::move(note));
  }

  Dim place_scaled(const std::vector<int>& buffers, const Dim& scale, const Dim& base) {
    std::vector<Item> items;
    for (int buffer : buffers) {
      const Dim bytes = bytes_of(program_.buffers[static_cast<size_t>(buffer)]);
      const int64_t units = scale == Dim(1) ? bytes.value() : *multiple_of(bytes, scale);
      items.push_back({buffer, staggered(aligned(std::max<int64_t>(units, 1))), lives_[static_cast<size_t>(buffer)]});
    }
    const Placed placed = place(items, most_comparisons_);
    note_limit(placed, items.size());
    for (const Item& item : items)
      program_.buffers[static_cast<size_t>(item.buffer)].arena_offset = base + scale * Dim(item.offset);
    return base + scale * Dim(placed.bytes);
  }

  /// A place for each size expression and each set of buffers that are alive together.
  Dim place_equal_sizes(const std::vector<int>& buffers, Dim arena) {
    struct Place {
      Dim bytes, offset;
      std::vector<Lifetime> taken;
    };
    std::vector<Place> places;
    for (int index : buffers) {
      Buffer& buffer = program_.buffers[static_cast<size_t>(index)];
      const Lifetime& life = lives_[static_cast<size_t>(index)];
      const Dim bytes = bytes_of(buffer);
      auto free = std::find_if(places.begin(), places.end(), [&](const Place& p) {
        return p.bytes == bytes &&
               std::none_of(p.taken.begin(), p.taken.end(), [&](const Lifetime& l) { return overlap(l, life); });
      });
      if (free == places.end()) {
        places.push_back({bytes, arena, {}});
        free = places.end() - 1;
        arena = arena + ceil_div(bytes, Dim(kAlignment)) * Dim(kAlignment);
      }
      free->taken.push_back(life);
      buffer.arena_offset = free->offset;
    }
    return arena;
  }
};

}  // namespace

void plan_memory(Program& program, int64_t most_comparisons) { Planner(program, most_comparisons).run(); }

}  // namespace opfuse
