// The list of launches is numbers, which the header's NAME_run reads:
//
//   code offset, parts, count of pointers, then for each pointer: storage, which input or output, byte offset
//
// Bodies (images of a batch, steps of a sequence) are written out, a launch for each time, because all sizes are known.
#include "object/standalone.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/fail.hpp"
#include "object/elf_object.hpp"
#include "object/header_text.hpp"

namespace opfuse {
namespace {

/// What the header's reader knows; none: an operand that is absent.
enum Place : int64_t { kInput = 0, kOutput = 1, kConstant = 2, kArena = 3, kNone = 4 };

struct Pointer {
  int64_t place = kNone, root = 0, offset = 0;
};

struct LaunchList {
  const Artifact& artifact;
  std::vector<int64_t> numbers;
  int64_t count = 0;

  Pointer pointer_to(int buffer) const {
    if (buffer < 0) return {};
    const ArtifactBuffer& b = artifact.buffers[static_cast<size_t>(buffer)];
    constexpr int64_t kPlaces[] = {kInput, kOutput, kConstant, kArena};
    static_assert(static_cast<int>(Storage::input) == 0 && static_cast<int>(Storage::arena) == 3);
    return {kPlaces[static_cast<int>(b.storage)], std::max(b.root, 0), b.offset.value()};
  }

  /// The launch at a step of its body; alone it is step 0.
  void add(const ArtifactLaunch& launch, int64_t step) {
    numbers.insert(numbers.end(), {static_cast<int64_t>(launch.code_offset), launch.parts.value(),
                                   static_cast<int64_t>(launch.buffers.size())});
    for (size_t i = 0; i < launch.buffers.size(); ++i) {
      Pointer p = pointer_to(launch.buffers[i]);
      if (i < launch.steps.size()) {
        const ArtifactLaunch::Step& s = launch.steps[i];
        const bool before = s.first >= 0;
        if (before && step == 0)
          p = pointer_to(launch.buffers[static_cast<size_t>(s.first)]);
        else
          p.offset += (before ? step - 1 : step) * s.bytes.value();
      }
      numbers.insert(numbers.end(), {p.place, p.root, p.offset});
    }
    ++count;
  }

  void add_all() {
    size_t next = 0;
    const auto add_to = [&](size_t end) {
      for (; next < end; ++next) add(artifact.launches[next], 0);
    };
    for (const ArtifactBody& body : artifact.bodies) {
      add_to(static_cast<size_t>(body.first));
      const size_t end = static_cast<size_t>(body.first + body.launches);
      for (int64_t step = 0; step < body.times.value(); ++step)
        for (size_t l = static_cast<size_t>(body.first); l < end; ++l) add(artifact.launches[l], step);
      next = end;
    }
    add_to(artifact.launches.size());
  }
};

void check(const Artifact& a, const std::string& name) {
  const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; };
  const auto fits = [&](char c) { return letter(c) || std::isdigit(static_cast<unsigned char>(c)); };
  if (name.empty() || !letter(name[0]) || !std::all_of(name.begin(), name.end(), fits))
    throw fail(E::bad_option, "'{}' is not a name that C takes", name).hint("letters, digits and _ name the functions");
  if (a.on_device())
    throw fail(E::uncompilable, "an object file has code of the CPU, this program is for {}", a.target);
  if (!a.symbols.empty() || !a.variants.empty())
    throw fail(E::uncompilable, "an object file has fixed sizes, this program has open dimensions: {}",
               fmt::join(a.symbols, ", "))
        .hint("give them with --dim NAME=SIZE");
  for (const ArtifactLaunch& launch : a.launches)
    if (launch.host) throw fail(E::uncompilable, "an object file has no interpreter").node(launch.name);
}

}  // namespace

StandaloneModel standalone_model(const Artifact& artifact, const std::string& name) {
  check(artifact, name);
  LaunchList list{artifact, {}, 0};
  list.add_all();
  const auto* bytes = reinterpret_cast<const uint8_t*>(list.numbers.data());
  return {elf_object({{name + "_code", artifact.code, true},
                      {name + "_constants", artifact.constants},
                      {name + "_launches", {bytes, list.numbers.size() * sizeof(int64_t)}}}),
          header_text(artifact, name, list.count)};
}

std::string c_name_of(const std::string& path) {
  std::string name = std::filesystem::path(path).stem().string();
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) ? "model_" + name : name;
}

}  // namespace opfuse
