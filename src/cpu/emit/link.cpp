// A linker for one self-contained object, and what it calls of a tile's: allocated sections (code, constants) in file
// order, each at its alignment; relocations between them are relative, so the result runs wherever it is mapped.
#include <llvm/BinaryFormat/ELF.h>
#include <llvm/Object/Archive.h>
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

/// Where a symbol of one of the objects lies: a section of it, and the offset there.
struct Definition {
  size_t object = 0;
  llvm::object::ELFSymbolRef symbol;
};

class Linker {
 public:
  Linker(const std::string& symbol, const IntrinsicCode* intrinsic) : symbol_(symbol), intrinsic_(intrinsic) {}

  /// The kernel's own object comes first.
  void add(const Object& object) {
    objects_.push_back(&object);
    place(objects_.size() - 1);
    for (const llvm::object::ELFSymbolRef s : object.symbols())
      if (s.getBinding() != llvm::ELF::STB_LOCAL && is_defined(s, object))
        defined_.try_emplace(must(s.getName(), symbol_).str(), Definition{objects_.size() - 1, s});
  }

  /// Names that no object so far defines.
  std::vector<std::string> undefined() {
    std::vector<std::string> names;
    for (const Object* object : objects_)
      for (const llvm::object::ELFSymbolRef s : object->symbols()) {
        const std::string name = meant(must(s.getName(), symbol_).str());
        if (!name.empty() && s.getBinding() != llvm::ELF::STB_LOCAL && !is_defined(s, *object) &&
            !defined_.contains(name))
          names.push_back(name);
      }
    return names;
  }

  FlatCode link() {
    for (size_t o = 0; o < objects_.size(); ++o) resolve_all(o);
    const auto at = defined_.find(symbol_);
    if (at == defined_.end()) throw fail(E::codegen_failed, "the object of {} does not define it", symbol_);
    flat_.entry = address(at->second.object, at->second.symbol);
    flat_.size = at->second.symbol.getSize();
    return std::move(flat_);
  }

 private:
  const std::string& symbol_;
  const IntrinsicCode* intrinsic_;
  std::vector<const Object*> objects_;
  FlatCode flat_;
  std::map<std::pair<size_t, uint64_t>, size_t> offsets_;  ///< by object and section
  std::map<std::string, Definition> defined_;

  /// Kernels name a tile by what it is for.
  std::string meant(const std::string& name) const {
    return intrinsic_ && name == kIntrinsicSymbol ? intrinsic_->symbol : name;
  }

  bool is_defined(const llvm::object::ELFSymbolRef& s, const Object& object) const {
    return must(s.getSection(), symbol_) != object.section_end();
  }

  void place(size_t o) {
    for (const llvm::object::ELFSectionRef section : objects_[o]->sections()) {
      const llvm::StringRef name = must(section.getName(), symbol_);
      if (!is_placed(section, name)) continue;
      const size_t alignment = std::max<size_t>(section.getAlignment().value(), 1);
      flat_.bytes.resize((flat_.bytes.size() + alignment - 1) / alignment * alignment, 0);
      offsets_[{o, section.getIndex()}] = flat_.bytes.size();
      const bool writable = (section.getFlags() & llvm::ELF::SHF_WRITE) != 0;
      OPFUSE_CHECK(o > 0 || !writable, "writable section in a kernel");
      if (writable)
        throw fail(E::codegen_failed, "{} has variables ({}): a tile keeps nothing between its calls",
                   intrinsic_->source, name.str());
      const llvm::StringRef contents = must(section.getContents(), symbol_);
      flat_.bytes.insert(flat_.bytes.end(), contents.begin(), contents.end());
    }
  }

  size_t address(size_t o, const llvm::object::ELFSymbolRef& s) {
    const auto section = must(s.getSection(), symbol_);
    if (section != objects_[o]->section_end()) {
      const auto at = offsets_.find({o, section->getIndex()});
      if (at == offsets_.end())
        throw fail(E::codegen_failed, "{} refers to a section that is not part of a kernel", symbol_);
      return at->second + must(s.getValue(), symbol_);
    }
    const std::string name = meant(must(s.getName(), symbol_).str());
    const auto at = defined_.find(name);
    if (at == defined_.end()) throw lacks(o, name);
    return address(at->second.object, at->second.symbol);
  }

  Error lacks(size_t o, const std::string& name) const {
    if (!intrinsic_) return fail(E::codegen_failed, "kernel {} needs the undefined symbol '{}'", symbol_, name);
    if (o == 0) return fail(E::codegen_failed, "{} does not define {}", intrinsic_->source, name);
    return fail(E::codegen_failed, "{} needs the symbol '{}', which it does not define", intrinsic_->source, name)
        .hint("kernels hold all of their code: nothing of a library of the system, not memset either");
  }

  void resolve_all(size_t o) {
    for (const llvm::object::SectionRef& section : objects_[o]->sections()) {
      const auto target = must(section.getRelocatedSection(), symbol_);
      if (target == objects_[o]->section_end()) continue;
      const auto at = offsets_.find({o, target->getIndex()});
      if (at == offsets_.end()) continue;
      for (const llvm::object::RelocationRef& r : section.relocations()) resolve(o, r, at->second);
    }
  }

  void resolve(size_t o, const llvm::object::ELFRelocationRef& r, size_t base) {
    const size_t place = base + r.getOffset();
    const int64_t addend = must(r.getAddend(), symbol_);
    const auto value = static_cast<int64_t>(address(o, *r.getSymbol())) + addend - static_cast<int64_t>(place);
    const uint64_t type = r.getType();
    if (type == llvm::ELF::R_X86_64_PC64) {
      std::memcpy(&flat_.bytes.at(place), &value, 8);
      return;
    }
    const bool relative32 = type == llvm::ELF::R_X86_64_PC32 || type == llvm::ELF::R_X86_64_PLT32;
    if (!relative32)
      throw fail(E::codegen_failed, "{} has a relocation of type {}", o == 0 ? "kernel " + symbol_ : intrinsic_->source,
                 type)
          .hint(o == 0 ? "" : "compile it with -fPIC -fvisibility=hidden");
    const auto narrow = static_cast<int32_t>(value);
    OPFUSE_CHECK(narrow == value, "relocation out of range");
    std::memcpy(&flat_.bytes.at(place), &narrow, 4);
  }
};

std::unique_ptr<llvm::object::ObjectFile> object_in(const llvm::MemoryBufferRef& buffer, const std::string& symbol) {
  return must(llvm::object::ObjectFile::createELFObjectFile(buffer), symbol);
}

const Object& elf_of(const llvm::object::ObjectFile& file, const std::string& source) {
  const auto* elf = llvm::dyn_cast<Object>(&file);
  if (!elf || !file.isRelocatableObject() || file.getArch() != llvm::Triple::x86_64)
    throw fail(E::codegen_failed, "{} is not an object of x86-64", source);
  return *elf;
}

/// Members of an archive that define what is still missing, one after another.
class Library {
 public:
  Library(const IntrinsicCode& code, const std::string& symbol) : code_(code), symbol_(symbol) {}

  void add_to(Linker& linker) {
    const llvm::MemoryBufferRef buffer(code_.object, code_.source);
    if (!llvm::StringRef(code_.object).starts_with("!<arch>")) return add(linker, buffer);
    archive_ = must(llvm::object::Archive::create(buffer), symbol_);
    for (bool more = true; more;) {
      more = false;
      for (const std::string& name : linker.undefined()) {
        const auto member = must(archive_->findSym(name), symbol_);
        if (!member) continue;
        add(linker, must(member->getMemoryBufferRef(), symbol_));
        more = true;
        break;
      }
    }
  }

 private:
  const IntrinsicCode& code_;
  const std::string& symbol_;
  std::unique_ptr<llvm::object::Archive> archive_;
  std::vector<std::unique_ptr<llvm::object::ObjectFile>> files_;

  void add(Linker& linker, const llvm::MemoryBufferRef& buffer) {
    files_.push_back(object_in(buffer, symbol_));
    linker.add(elf_of(*files_.back(), code_.source));
  }
};

}  // namespace

FlatCode link_object(const std::vector<char>& object, const std::string& symbol, const IntrinsicCode* intrinsic) {
  const auto file = object_in({llvm::StringRef(object.data(), object.size()), symbol}, symbol);
  const auto* elf = llvm::dyn_cast<Object>(file.get());
  OPFUSE_CHECK(elf, "not a 64-bit ELF object");
  Linker linker(symbol, intrinsic);
  linker.add(*elf);
  if (!intrinsic) return linker.link();
  Library library(*intrinsic, symbol);
  library.add_to(linker);
  return linker.link();
}

}  // namespace opfuse::cpu
