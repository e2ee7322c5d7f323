// Reading a target's file: what it extends first, then its own fields over that, then whether the whole makes sense.
//     schema = 1 / name = "cpu:mine" / extends = "cpu:avx512" / [caches] / l2_bytes = 2097152
// A mistake is said once, where it is, and the next one is looked for. Features are added to those of what is extended.
// What code generation takes for granted is checked: instructions that LLVM may use are among the features.
#include "target/target_file.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "base/mapped_file.hpp"
#include "target/capability_reader.hpp"
#include "target/fields.hpp"
#include "target/kinds.hpp"

namespace opfuse {
namespace {

constexpr int64_t kSchema = 1;
constexpr int kMostExtended = 16;  ///< files in a row, above which one extends itself

/// What LLVM may use for a processor, of the features that opfuse knows.
const std::map<std::string, std::vector<std::string>>& instructions_of_cpus() {
  static const std::map<std::string, std::vector<std::string>> table = {
      {"x86-64", {"sse2"}},
      {"x86-64-v3", {"avx2", "fma"}},
      {"x86-64-v4", {"avx2", "fma", "avx512f", "avx512vl", "avx512bw", "avx512dq"}},
  };
  return table;
}

bool contains(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::string dotted(const TargetField& field) {
  return *field.section ? fmt::format("{}.{}", field.section, field.key) : field.key;
}

/// "cpu:avx2"; the stem of a file that is there to be extended.
std::string name_in(const ShippedTarget& shipped) {
  constexpr std::string_view kName = "\nname = \"";
  const size_t at = shipped.text.find(kName);
  if (at == std::string_view::npos) return std::string(shipped.stem);
  const std::string_view rest = shipped.text.substr(at + kName.size());
  return std::string(rest.substr(0, rest.find('"')));
}

class Reader {
 public:
  Reader(std::string file, bool shipped, int depth) : file_(std::move(file)), shipped_(shipped), depth_(depth) {}

  TargetFile read(std::string_view text) {
    try {
      document_ = toml::parse(text, file_);
    } catch (const toml::parse_error& error) {
      wrong(error.source(), std::string(error.description()));
      return std::move(result_);
    }
    if (!right_schema()) return std::move(result_);
    const bool whole = extend() && settle_kind();
    if (!whole) return std::move(result_);
    for (const auto& [key, node] : document_) read_entry(std::string(key.str()), node);
    if (result_.mistakes.empty()) finish();
    std::stable_sort(result_.mistakes.begin(), result_.mistakes.end(), [](const auto& a, const auto& b) {
      return std::tie(a.line, a.column) < std::tie(b.line, b.column);
    });
    return std::move(result_);
  }

 private:
  std::string file_;
  bool shipped_ = false;
  int depth_ = 0;
  toml::table document_;
  TargetFile result_;

  TargetInfo& target() { return result_.target; }

  static TargetFile read_shipped(const ShippedTarget& shipped, int depth) {
    return Reader(std::string(shipped.stem) + ".toml", true, depth).read(shipped.text);
  }

  void wrong(const toml::source_region& at, std::string message, std::string hint = {}) {
    const size_t line = std::max<size_t>(at.begin.line, 1), column = std::max<size_t>(at.begin.column, 1);
    result_.mistakes.push_back({file_, line, column, std::move(message), std::move(hint)});
  }
  const toml::source_region& place(std::string_view section, std::string_view key) const {
    const toml::table* table = section.empty() ? &document_ : document_[section].as_table();
    const toml::node* node = table ? table->get(key) : nullptr;
    return node ? node->source() : document_.source();
  }

  bool right_schema() {
    const toml::node* node = document_.get("schema");
    const std::optional<int64_t> schema = node && node->is_integer() ? node->value<int64_t>() : std::nullopt;
    if (schema == kSchema) return true;
    wrong(node ? node->source() : document_.source(),
          !node    ? "the file lacks its schema"
          : schema ? fmt::format("schema {} is of another opfuse; this one reads schema {}", *schema, kSchema)
                   : "schema must be a whole number",
          fmt::format("begin with schema = {}", kSchema));
    return false;
  }

  /// Starts from what the file extends; false where that is wrong.
  bool extend() {
    const toml::node* node = document_.get("extends");
    if (!node) return true;
    const std::optional<std::string> base = node->value<std::string>();
    if (!base || !node->is_string()) {
      wrong(node->source(), "extends must be a text");
      return false;
    }
    if (depth_ >= kMostExtended) {
      wrong(node->source(), fmt::format("{} files extend each other: one of them extends itself", kMostExtended));
      return false;
    }
    std::vector<std::string> names;
    for (const ShippedTarget& shipped : shipped_targets()) {
      names.push_back(name_in(shipped));
      if (names.back() == *base) return adopt(read_shipped(shipped, depth_ + 1));
    }
    if (base->ends_with(".toml")) return extend_file(*base, node->source());
    wrong(node->source(), fmt::format("there is no target '{}' to extend", *base), did_you_mean(*base, names));
    return false;
  }

  bool extend_file(const std::string& base, const toml::source_region& at) {
    const std::string path = (std::filesystem::path(file_).parent_path() / base).string();
    try {
      return adopt(Reader(path, false, depth_ + 1).read(MappedFile::open(path)->bytes()));
    } catch (const Error& error) {
      wrong(at, error.diagnostic().message);
      return false;
    }
  }

  bool adopt(TargetFile base) {
    result_ = std::move(base);
    target().name.clear();
    target().about.clear();
    return result_.mistakes.empty();
  }

  bool settle_kind() {
    std::vector<std::string> kinds;
    for (const DeviceKind& kind : device_kinds()) kinds.push_back(kind.name);
    const toml::node* node = document_.get("kind");
    if (node && node->is_string()) {
      const std::string given = *node->value<std::string>();
      if (!target().kind.empty() && given != target().kind) {
        wrong(node->source(), fmt::format("the file extends a target of the kind {}", target().kind));
        return false;
      }
      target().kind = given;
    }
    for (const DeviceKind& kind : device_kinds())
      if (kind.name == target().kind) return target().traits = kind.traits, true;
    wrong(node ? node->source() : document_.source(),
          target().kind.empty() ? "the file has neither kind nor extends"
                                : fmt::format("there is no kind of device '{}'", target().kind),
          fmt::format("kinds: {}", fmt::join(kinds, ", ")));
    return false;
  }

  void read_entry(const std::string& key, const toml::node& node) {
    if (key == "schema" || key == "extends") return;
    if (contains(capability_sections(), key)) return read_said(key, node);
    const toml::table* table = node.as_table();
    if (!table && !node.is_array_of_tables()) return read_field("", key, node);
    std::vector<std::string> sections;
    for (const TargetField& field : target_fields())
      if (*field.section && !contains(sections, field.section)) sections.emplace_back(field.section);
    sections.insert(sections.end(), capability_sections().begin(), capability_sections().end());
    if (!contains(sections, key))
      return wrong(node.source(), fmt::format("[{}] is not a section of a target", key), did_you_mean(key, sections));
    for (const auto& [name, value] : *table) read_field(key, std::string(name.str()), value);
  }

  /// Sections that some kinds of devices do not have.
  void read_said(const std::string& key, const toml::node& node) {
    const bool of_device = key == "device" || key == "transfer" || key == "plugin";
    const bool has = key == "device"     ? !find_kind(target().kind)->generated
                     : key == "transfer" ? target().kind == "accelerator" || target().kind == "cuda"
                                         : target().kind == "accelerator";
    if (of_device && !has)
      return wrong(node.source(), fmt::format("[{}] is not a section of {} targets", key, target().kind));
    read_capabilities(key, node, file_, result_.capabilities,
                      [this](const auto& at, std::string message, std::string hint) {
                        wrong(at, std::move(message), std::move(hint));
                      });
    if (target().kind == "cpu") return;
    for (const CompositeRow& row : result_.capabilities.composites)
      if (row.intrinsic.given())
        wrong(
            node.source(), fmt::format("intrinsics are of cpu targets; this one is of the kind {}", target().kind),
            target().kind == "accelerator" ? "an accelerator runs whole pieces by its plug-in (docs/plugins.md)" : "");
  }

  void read_field(const std::string& section, const std::string& key, const toml::node& node) {
    std::vector<std::string> keys;
    for (const TargetField& field : target_fields()) {
      if (field.section != section) continue;
      keys.emplace_back(field.key);
      if (field.key != key) continue;
      if (!field.allowed(target().kind))
        return wrong(node.source(), fmt::format("{} is not a field of {} targets", dotted(field), target().kind));
      if (std::visit([&](auto in) { return read_into(in(target()), field, node); }, field.access))
        result_.stated[dotted(field)] = !shipped_;
      return;
    }
    if (section.empty()) keys.insert(keys.end(), {"schema", "extends"});
    wrong(node.source(),
          section.empty() ? fmt::format("\"{}\" is not a field of a target", key)
                          : fmt::format("[{}] has no field \"{}\"", section, key),
          did_you_mean(key, keys));
  }

  bool read_into(std::string& into, const TargetField& field, const toml::node& node) {
    if (!node.is_string()) return wrong(node.source(), fmt::format("{} must be a text", dotted(field))), false;
    return into = *node.value<std::string>(), true;
  }

  bool read_into(bool& into, const TargetField& field, const toml::node& node) {
    if (!node.is_boolean()) return wrong(node.source(), fmt::format("{} must be true or false", dotted(field))), false;
    return into = *node.value<bool>(), true;
  }

  template <class Number>
  bool read_into(Number& into, const TargetField& field, const toml::node& node) {
    constexpr bool whole = std::is_integral_v<Number>;
    if (!(whole ? node.is_integer() : node.is_number()))
      return wrong(node.source(), fmt::format("{} must be a {}number", dotted(field), whole ? "whole " : "")), false;
    const double value = *node.value<double>();
    if (!(value >= field.least && value <= field.most))
      return wrong(node.source(),
                   fmt::format("{} = {} is outside [{}, {}]", dotted(field), value, field.least, field.most)),
             false;
    return into = static_cast<Number>(value), true;
  }

  bool read_into(std::vector<std::string>& into, const TargetField& field, const toml::node& node) {
    const toml::array* list = node.as_array();
    if (!list) return wrong(node.source(), fmt::format("{} must be a list of texts", dotted(field))), false;
    std::vector<std::string> known, all;
    for (const CpuFeature& feature : cpu_features()) known.emplace_back(feature.name);
    for (const toml::node& item : *list) {
      const std::string feature = item.value<std::string>().value_or("");
      if (!item.is_string() || !contains(known, feature))
        wrong(item.source(), fmt::format("there is no feature '{}'", feature), did_you_mean(feature, known));
      else if (!contains(all, feature))
        all.push_back(feature);
    }
    for (const std::string& feature : into)
      if (!contains(all, feature)) all.push_back(feature);
    return into = std::move(all), true;
  }

  /// Everything is there and goes together.
  void finish() {
    name_it();
    if (target().name.empty()) return;
    if (target().kind == "cpu") take_later_fields();
    for (const TargetField& field : target_fields())
      if (std::string_view(field.kinds).find(target().kind) != std::string_view::npos &&
          !result_.stated.contains(dotted(field)))
        wrong(document_.source(), fmt::format("the target lacks {}", dotted(field)), "state it, or extend a target");
    if (!result_.mistakes.empty()) return;
    if (target().kind == "cpu") {
      check_instructions();
      check_caches();
    } else if (target().kind == "cuda") {
      check_gpu();
    } else {
      check_device();
    }
  }

  /// A file that was whole when it was written stays whole.
  void take_later_fields() {
    const auto lacks = [&](const TargetField& field) { return field.later && !result_.stated.contains(dotted(field)); };
    if (std::none_of(target_fields().begin(), target_fields().end(), lacks)) return;
    for (const ShippedTarget& shipped : shipped_targets()) {
      if (shipped.stem != "x86") continue;
      TargetFile common = read_shipped(shipped, depth_ + 1);
      for (const TargetField& field : target_fields())
        if (lacks(field)) {
          std::visit([&](auto in) { in(target()) = in(common.target); }, field.access);
          result_.stated[dotted(field)] = false;
        }
    }
  }

  void name_it() {
    const std::string prefix = find_kind(target().kind)->generated ? target().kind + ":" : "";
    std::string& name = target().name;
    if (name.empty() && !shipped_) name = prefix + std::filesystem::path(file_).stem().string();
    if (name.empty()) return;
    constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    if (!name.starts_with(prefix) || name.size() == prefix.size() ||
        name.find_first_not_of(kLetters, prefix.size()) != std::string::npos)
      wrong(place("", "name"), fmt::format("the name '{}' is not {}letters, digits, '_', '.' or '-'", name,
                                           prefix.empty() ? "" : prefix + " and "));
    if (shipped_) return;
    for (const ShippedTarget& shipped : shipped_targets())
      if (name == name_in(shipped) || name == "cpu:host")
        return wrong(place("", "name"), fmt::format("the name '{}' is that of a target of opfuse", name),
                     "choose another name, and extend that target");
  }

  void check_instructions() {
    const auto& cpus = instructions_of_cpus();
    const auto cpu = cpus.find(target().llvm_cpu);
    if (cpu == cpus.end()) {
      std::vector<std::string> names;
      for (const auto& [name, features] : cpus) names.push_back(name);
      return wrong(place("instructions", "llvm_cpu"), fmt::format("there is no llvm_cpu '{}'", target().llvm_cpu),
                   fmt::format("known: {}", fmt::join(names, ", ")));
    }
    const auto needs = [&](const std::string& what, const char* key, const std::vector<std::string>& features) {
      for (const std::string& feature : features)
        if (!target().has(feature))
          return wrong(place("instructions", key), fmt::format("{} needs the feature {}", what, feature),
                       "add it to instructions.features");
    };
    needs("llvm_cpu = \"" + target().llvm_cpu + "\"", "llvm_cpu", cpu->second);
    const int bytes = target().vector_bytes, registers = target().vector_registers;
    if (bytes != 16 && bytes != 32 && bytes != 64)
      wrong(place("instructions", "vector_bytes"), "vector_bytes must be 16, 32 or 64");
    if (registers != 16 && registers != 32)
      wrong(place("instructions", "vector_registers"), "vector_registers must be 16 or 32");
    if (bytes == 32) needs("vector_bytes = 32", "vector_bytes", {"avx2"});
    if (bytes == 64) needs("vector_bytes = 64", "vector_bytes", {"avx512f", "avx512vl", "avx512bw", "avx512dq"});
    if (registers == 32) needs("vector_registers = 32", "vector_registers", {"avx512vl"});
    if (target().fma) needs("fma = true", "fma", {"fma"});
  }

  void check_device() {
    const DeviceCosts& d = result_.capabilities.device;
    const auto lacks = [&](double number, const char* what) {
      if (number <= 0)
        wrong(document_.source(), fmt::format("the target lacks {}", what), "state it, or extend a target");
    };
    lacks(d.multiply_adds_per_second, "device.multiply_adds_per_second");
    lacks(d.bytes_per_second, "device.bytes_per_second");
    lacks(d.launch_seconds, "device.launch_seconds");
    if (target().kind == "accelerator") lacks(d.transfer_bytes_per_second, "transfer.bytes_per_second");
  }

  void check_gpu() {
    const TargetInfo& t = target();
    if (!shipped_ && t.emulated) return wrong(place("gpu", "emulated"), "only cuda:emulated itself is emulated");
    if (!(t.emulated ? t.cuda_arch == "emulated" : t.cuda_arch.starts_with("sm_")))
      wrong(place("gpu", "arch"), fmt::format("\"{}\" is not an architecture", t.cuda_arch), "write \"sm_80\"");
  }

  void check_caches() {
    const TargetInfo& t = target();
    if (t.l1_bytes <= t.l2_bytes && t.l2_bytes <= t.l3_bytes) return;
    wrong(document_.contains("caches") ? document_["caches"].node()->source() : document_.source(),
          fmt::format("caches of {}, {} and {} bytes: a level is smaller than the one before", t.l1_bytes, t.l2_bytes,
                      t.l3_bytes));
  }
};

}  // namespace

TargetFile read_target_text(std::string_view text, const std::string& file) {
  return Reader(file, false, 0).read(text);
}

TargetFile read_target_file(const std::string& path) { return read_target_text(MappedFile::open(path)->bytes(), path); }

TargetFile read_shipped(const ShippedTarget& shipped) {
  return Reader(std::string(shipped.stem) + ".toml", true, 0).read(shipped.text);
}

}  // namespace opfuse
