//   header | block, block ... (one section each, page-aligned) | .note.GNU-stack | symbols | names | section headers
//
// No relocations: code is position-independent, tables hold offsets.
#include "object/elf_object.hpp"

#include <elf.h>

#include <cstring>

namespace opfuse {
namespace {

constexpr size_t kPage = 4096;

/// Text with offsets: names of sections and symbols.
struct Names {
  std::string text = std::string(1, '\0');
  uint32_t add(const std::string& name) {
    const auto at = static_cast<uint32_t>(text.size());
    text += name + '\0';
    return at;
  }
};

struct Writer {
  std::string file = std::string(sizeof(Elf64_Ehdr), '\0');
  std::vector<Elf64_Shdr> sections = std::vector<Elf64_Shdr>(1);
  Names names;

  size_t section(const std::string& name, uint32_t type, uint64_t flags, std::string_view bytes, size_t alignment) {
    file.resize((file.size() + alignment - 1) / alignment * alignment);
    Elf64_Shdr s{};
    s.sh_name = names.add(name);
    s.sh_type = type;
    s.sh_flags = flags;
    s.sh_offset = file.size();
    s.sh_size = bytes.size();
    s.sh_addralign = alignment;
    file.append(bytes);
    sections.push_back(s);
    return sections.size() - 1;
  }
};

template <class T>
std::string_view bytes_of(const std::vector<T>& list) {
  return {reinterpret_cast<const char*>(list.data()), list.size() * sizeof(T)};
}

}  // namespace

std::string elf_object(const std::vector<ElfBlock>& blocks) {
  Writer w;
  Names symbol_names;
  std::vector<Elf64_Sym> symbols(1);
  for (const ElfBlock& block : blocks) {
    const std::string_view bytes{reinterpret_cast<const char*>(block.bytes.data()), block.bytes.size()};
    const size_t section = w.section((block.executable ? ".text." : ".rodata.") + block.symbol, SHT_PROGBITS,
                                     block.executable ? SHF_ALLOC | SHF_EXECINSTR : SHF_ALLOC, bytes, kPage);
    Elf64_Sym symbol{};
    symbol.st_name = symbol_names.add(block.symbol);
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
    symbol.st_other = STV_HIDDEN;
    symbol.st_shndx = static_cast<uint16_t>(section);
    symbol.st_size = block.bytes.size();
    symbols.push_back(symbol);
  }
  w.section(".note.GNU-stack", SHT_PROGBITS, 0, {}, 1);  // the stack needs not be executable
  const size_t table = w.section(".symtab", SHT_SYMTAB, 0, bytes_of(symbols), 8);
  const size_t strings = w.section(".strtab", SHT_STRTAB, 0, symbol_names.text, 1);
  w.sections[table].sh_link = static_cast<uint32_t>(strings);
  w.sections[table].sh_info = 1;  // the first global symbol
  w.sections[table].sh_entsize = sizeof(Elf64_Sym);
  const uint32_t own_name = w.names.add(".shstrtab");
  const std::string all_names = w.names.text;
  const size_t section_names = w.section("", SHT_STRTAB, 0, all_names, 1);
  w.sections[section_names].sh_name = own_name;
  w.file.resize((w.file.size() + 7) / 8 * 8);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_shoff = w.file.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<uint16_t>(w.sections.size());
  header.e_shstrndx = static_cast<uint16_t>(section_names);
  std::memcpy(w.file.data(), &header, sizeof header);
  w.file.append(bytes_of(w.sections));
  return std::move(w.file);
}

}  // namespace opfuse
