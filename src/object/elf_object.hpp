// A relocatable ELF object for x86-64 that holds blocks of bytes, each under a name that C can refer to.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace opfuse {

struct ElfBlock {
  std::string symbol;
  std::span<const uint8_t> bytes;
  bool executable = false;  ///< machine code; else constants
};

/// The bytes of the object file. Blocks begin on pages.
std::string elf_object(const std::vector<ElfBlock>& blocks);

}  // namespace opfuse
