// A linker for one self-contained object: allocated sections (code, constants) in file order, each at its
// alignment; relocations between them are relative, so the result runs wherever it is mapped.
#include <llvm/BinaryFormat/ELF.h>
#include <llvm/Object/ELFObjectFile.h>

#include <cstring>
#include <map>

#include "base/fail.hpp"
#include "cpu/emit/module.hpp"

namespace opfuse::cpu {
namespace {

using Object = llvm::object::ELFObjectFile<llvm::object::ELF64LE>;

template <class T>
T must(llvm::Expected<T> value, const std::string& symbol) {
  if (value) return std::move(*value);
  throw fail(E::codegen_failed, "the object of {} is unreadable: {}", symbol, llvm::toString(value.takeError()));
}

bool is_placed(const llvm::object::ELFSectionRef& section, llvm::StringRef name) {
  return (section.getFlags() & llvm::ELF::SHF_ALLOC) && section.getSize() > 0 && !name.starts_with(".eh_frame");
}

class Linker {
 public:
  Linker(const Object& object, const std::string& symbol) : object_(object), symbol_(symbol) {}

  FlatCode link() {
    place();
    for (const llvm::object::SectionRef& section : object_.sections()) {
      const auto target = must(section.getRelocatedSection(), symbol_);
      if (target == object_.section_end()) continue;
      const auto at = offsets_.find(target->getIndex());
      if (at == offsets_.end()) continue;
      for (const llvm::object::RelocationRef& r : section.relocations()) resolve(r, at->second);
    }
    for (const llvm::object::ELFSymbolRef s : object_.symbols())
      if (must(s.getName(), symbol_) == symbol_) {
        flat_.entry = address(s);
        flat_.size = s.getSize();
        return std::move(flat_);
      }
    throw fail(E::codegen_failed, "the object of {} does not define it", symbol_);
  }

 private:
  const Object& object_;
  const std::string& symbol_;
  FlatCode flat_;
  std::map<uint64_t, size_t> offsets_;

  void place() {
    for (const llvm::object::ELFSectionRef section : object_.sections()) {
      if (!is_placed(section, must(section.getName(), symbol_))) continue;
      const size_t alignment = std::max<size_t>(section.getAlignment().value(), 1);
      flat_.bytes.resize((flat_.bytes.size() + alignment - 1) / alignment * alignment, 0);
      offsets_[section.getIndex()] = flat_.bytes.size();
      const llvm::StringRef contents = must(section.getContents(), symbol_);
      OPFUSE_CHECK((section.getFlags() & llvm::ELF::SHF_WRITE) == 0, "writable section in a kernel");
      flat_.bytes.insert(flat_.bytes.end(), contents.begin(), contents.end());
    }
  }

  size_t address(const llvm::object::ELFSymbolRef& s) {
    const auto section = must(s.getSection(), symbol_);
    if (section == object_.section_end())
      throw fail(E::codegen_failed, "kernel {} needs the undefined symbol '{}'", symbol_,
                 must(s.getName(), symbol_).str());
    return offsets_.at(section->getIndex()) + must(s.getValue(), symbol_);
  }

  void resolve(const llvm::object::ELFRelocationRef& r, size_t base) {
    const size_t place = base + r.getOffset();
    const int64_t addend = must(r.getAddend(), symbol_);
    const auto value = static_cast<int64_t>(address(*r.getSymbol())) + addend - static_cast<int64_t>(place);
    const uint64_t type = r.getType();
    if (type == llvm::ELF::R_X86_64_PC64) {
      std::memcpy(&flat_.bytes.at(place), &value, 8);
      return;
    }
    const bool relative32 = type == llvm::ELF::R_X86_64_PC32 || type == llvm::ELF::R_X86_64_PLT32;
    if (!relative32) throw fail(E::codegen_failed, "kernel {} has a relocation of type {}", symbol_, type);
    const auto narrow = static_cast<int32_t>(value);
    OPFUSE_CHECK(narrow == value, "relocation out of range");
    std::memcpy(&flat_.bytes.at(place), &narrow, 4);
  }
};

}  // namespace

FlatCode link_object(const std::vector<char>& object, const std::string& symbol) {
  const llvm::MemoryBufferRef buffer(llvm::StringRef(object.data(), object.size()), symbol);
  auto file = must(llvm::object::ObjectFile::createELFObjectFile(buffer), symbol);
  auto* elf = llvm::dyn_cast<Object>(file.get());
  OPFUSE_CHECK(elf, "not a 64-bit ELF object");
  return Linker(*elf, symbol).link();
}

}  // namespace opfuse::cpu
