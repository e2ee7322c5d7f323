// Random damage to a file, seeded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace opfuse::test {

class Generator {
 public:
  explicit Generator(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return state_ >> 33;
  }
  size_t below(size_t n) { return static_cast<size_t>(next() % n); }

 private:
  uint64_t state_;
};

inline std::string mutated(std::string bytes, Generator& random) {
  const size_t edits = 1 + random.below(4);
  for (size_t i = 0; i < edits && !bytes.empty(); ++i) {
    const size_t at = random.below(bytes.size());
    switch (random.below(6)) {
      case 0:
        bytes[at] = static_cast<char>(random.next());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.insert(at, 1 + random.below(8), static_cast<char>(random.next()));
        break;
      case 4:
        bytes.erase(at, 1 + random.below(8));
        break;
      default:
        bytes.replace(at, std::min<size_t>(9, bytes.size() - at), std::string(9, '\xff'));
        break;
    }
  }
  return bytes;
}

}  // namespace opfuse::test
