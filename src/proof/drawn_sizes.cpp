// Three rounds: 1 wherever that is legal, odd sizes, any sizes. A round begins small and grows; some of its draws give
// all dimensions one size, since many models want them equal, and some keep single dimensions small, as batches are.
#include "proof/drawn_sizes.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "interp/random_inputs.hpp"
#include "runtime/artifact.hpp"

namespace opfuse {
namespace {

constexpr int kAttempts = 64;
constexpr int64_t kSmall = 5;                              ///< of dimensions that stay small
constexpr int64_t kLargest[] = {7, 17, 33, 65, 129, 225};  ///< of a draw, growing with the attempts

enum class Round { ones, odd, any };

int64_t draw(Round round, int64_t largest, Random& random) {
  if (round == Round::ones) return random.between(0, 1) ? 1 : largest - 1;
  if (round == Round::odd) return 2 * random.between(1, (largest - 1) / 2) + 1;
  return random.between(2, largest);
}

SymbolValues draw_all(const std::set<std::string>& open, Round round, int attempt, Random& random) {
  const int64_t largest = kLargest[static_cast<size_t>(attempt) * std::size(kLargest) / kAttempts];
  const bool equal = attempt % 4 == 3;
  const int64_t shared = draw(round, largest, random);
  SymbolValues sizes;
  for (const std::string& symbol : open) {
    const bool small = random.between(0, 2) == 0;
    const int64_t own = draw(round, small ? kSmall : largest, random);
    sizes[symbol] = round == Round::ones && attempt == 0 ? 1 : equal ? shared : own;
  }
  return sizes;
}

bool is_symbol(const Dim& dim) { return !dim.is_constant() && dim.op() == DimOp::symbol; }

/// Values that equalities give to open dimensions, from what is known and from constants first. Each symbol gets one
/// value, in as many rounds as there are equalities at most.
void obey(const std::vector<DimConstraint>& constraints, SymbolValues known, SymbolValues& sizes) {
  const auto set = [&](const Dim& a, const Dim& b, bool drawn) {
    if (!is_symbol(a) || known.contains(a.symbol_name())) return false;
    SymbolValues values = known;
    if (drawn) values.insert(sizes.begin(), sizes.end());
    const Dim value = b.substitute(values);
    if (!value.is_constant() || value.value() < 0) return false;
    known[a.symbol_name()] = sizes[a.symbol_name()] = value.value();
    return true;
  };
  for (const bool drawn : {false, true})
    for (bool changed = true; changed;) {
      changed = false;
      for (const DimConstraint& c : constraints)
        if (c.relation.rule == DimRule::equal)
          changed = set(c.relation.a, c.relation.b, drawn) || set(c.relation.b, c.relation.a, drawn) || changed;
    }
}

/// Doubles what is too small (a map that five poolings halve has 32 rows at least) and leaves other symbols as drawn: a
/// batch need not grow with it. Odd sizes stay odd.
void grow(const std::vector<DimConstraint>& constraints, const SymbolValues& known, SymbolValues& sizes) {
  const int64_t most = kLargest[std::size(kLargest) - 1];
  for (bool changed = true; changed;) {
    changed = false;
    for (const DimConstraint& c : constraints) {
      SymbolValues values = known;
      values.insert(sizes.begin(), sizes.end());
      const std::set<std::string> used = symbols_of(c.relation);
      const auto given = [&](const std::string& s) { return values.contains(s); };
      if (c.relation.rule != DimRule::at_least || !std::ranges::all_of(used, given) || holds(c.relation, values))
        continue;
      for (const std::string& symbol : used)
        if (const auto at = sizes.find(symbol); at != sizes.end() && 2 * at->second + 1 <= most) {
          at->second = std::max<int64_t>(1, 2 * at->second) + (at->second > 1 ? at->second % 2 : 0);
          changed = true;
        }
    }
  }
}

}  // namespace

DrawnSizes draw_sizes(const std::set<std::string>& open, const SymbolValues& known, uint64_t seed,
                      const SizeCheck& check, const std::vector<DimConstraint>& constraints) {
  DrawnSizes drawn;
  Random random(seed, "sizes of open dimensions");
  for (const Round round : {Round::ones, Round::odd, Round::any}) {
    std::string first;
    bool found = false;
    for (int attempt = 0; attempt < kAttempts && !found; ++attempt) {
      SymbolValues sizes = draw_all(open, round, attempt, random);
      grow(constraints, known, sizes);
      obey(constraints, known, sizes);
      sizes.insert(known.begin(), known.end());
      if (std::find(drawn.sizes.begin(), drawn.sizes.end(), sizes) != drawn.sizes.end()) continue;
      const std::string why = check(sizes);
      found = why.empty();
      if (found)
        drawn.sizes.push_back(std::move(sizes));
      else if (first.empty())
        first = fmt::format("{}: {}", text_of(sizes), why);
    }
    if (!first.empty()) drawn.rejected.push_back(std::move(first));
  }
  return drawn;
}

}  // namespace opfuse
