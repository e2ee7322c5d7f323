// Asynchronous products of a group of four warps (wgmma, sm_90a) as PTX. The emulation has the same names
// (emulation_products.h).
#include <fmt/format.h>

#include "cuda/helpers.hpp"

namespace opfuse::cuda {
namespace {

/// A product of a group into its sums, 64 x `columns`. Operands are numbered behind those.
struct Product {
  std::string name, comment, type;
  int columns, depth;
  std::string parameters;             ///< behind the sums
  std::vector<std::string> operands;  ///< as the assembler takes them
  std::string left;                   ///< the left operand, # its numbers
  std::string modifiers;              ///< behind the right one
};

Helper helper_of(const Product& p) {
  const int sums = p.columns / 2;
  std::string registers, outputs, inputs, left;
  for (int i = 0; i < sums; ++i) {
    registers += fmt::format("{}%{}", i ? ", " : "", i);
    outputs += fmt::format("{}\"+f\"(d[{}])", i ? ", " : "", i);
  }
  int number = sums;
  for (const std::string& operand : p.operands) inputs += (inputs.empty() ? "" : ", ") + operand;
  for (char c : p.left) left += c == '#' ? fmt::format("%{}", number++) : std::string(1, c);
  return {p.name,
          fmt::format("{}__device__ __forceinline__ void {}(float (&d)[{}], {}) {{\n  asm volatile(\n"
                      "      \"wgmma.mma_async.sync.aligned.m64n{}k{}.f32.{}.{} {{{}}}, {}, %{}, {}\"\n"
                      "      : {}\n      : {});\n}}\n",
                      p.comment, p.name, sums, p.parameters, p.columns, p.depth, p.type, p.type, registers, left,
                      number, p.modifiers, outputs, inputs),
          {},
          true};
}

/// Both operands in shared memory. tf32 is 8 deep, and always as rows: no transposition to ask for.
Helper of_shared(const std::string& type, int columns) {
  const int depth = type == "tf32" ? 8 : 16;
  return helper_of({.name = fmt::format("product_{}_{}", type, columns),
                    .comment = fmt::format("// d += a * b for 64 x {} sums over {} products, by the four warps of a "
                                           "group; under way until product_wait.\n",
                                           columns, depth),
                    .type = type,
                    .columns = columns,
                    .depth = depth,
                    .parameters = "unsigned long long a, unsigned long long b",
                    .operands = {"\"l\"(a)", "\"l\"(b)"},
                    .left = "#",
                    .modifiers = type == "tf32" ? "1, 1, 1;" : "1, 1, 1, 0, 0;"});
}

/// The left operand in registers, in the fragments of mma; the right one with its columns together.
Helper of_registers(const std::string& type, int columns) {
  return helper_of(
      {.name = fmt::format("product_of_registers_{}_{}", type, columns),
       .comment =
           "// The same with 16 rows of a in each warp's registers, as mma has them, and columns of b together.\n",
       .type = type,
       .columns = columns,
       .depth = 16,
       .parameters = "const unsigned int (&a)[4], unsigned long long b",
       .operands = {"\"r\"(a[0])", "\"r\"(a[1])", "\"r\"(a[2])", "\"r\"(a[3])", "\"l\"(b)"},
       .left = "{#, #, #, #}",
       .modifiers = "1, 1, 1, 1;"});
}

std::vector<Helper> around_products() {
  return {
      {"async_fence",
       R"(// What this thread has stored in shared memory becomes visible to asynchronous products.
__device__ __forceinline__ void async_fence() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
)",
       {},
       true},
      {"operand_rows128",
       R"(// An operand's descriptor: k together, rows of 128 bytes in the swizzle of 128, eight rows 1024 bytes apart.
__device__ __forceinline__ unsigned long long operand_rows128(const void* p) {
  const unsigned int at = (unsigned int)__cvta_generic_to_shared(p);
  return (unsigned long long)((at & 0x3ffffu) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}
)",
       {},
       true},
      {"product_begin",
       R"(// Before the first product: registers are written, and from here on the unit's.
__device__ __forceinline__ void product_begin() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
)",
       {},
       true},
      {"product_commit",
       R"(// Ends a group of products.
__device__ __forceinline__ void product_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
)",
       {},
       true},
      {"product_wait",
       R"(// Waits until at most kPending groups of products are under way.
template <int kPending>
__device__ __forceinline__ void product_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
)",
       {},
       true},
      {"operand_columns128",
       R"(// The same of columns together: panels of 64 columns, `panel` bytes apart, with rows of k of 128 bytes.
__device__ __forceinline__ unsigned long long operand_columns128(const void* p, int panel) {
  const unsigned int at = (unsigned int)__cvta_generic_to_shared(p);
  return (unsigned long long)((at & 0x3ffffu) >> 4) | (unsigned long long)(panel >> 4) << 16 | 64ull << 32 | 1ull << 62;
}
)",
       {},
       true},
  };
}

}  // namespace

std::vector<Helper> group_product_helpers() {
  std::vector<Helper> all = around_products();
  for (const char* type : {"f16", "bf16", "tf32"})
    for (int columns : {64, 128, 256}) all.push_back(of_shared(type, columns));
  for (const char* type : {"f16", "bf16"})
    for (int columns : {64, 128}) all.push_back(of_registers(type, columns));
  return all;
}

}  // namespace opfuse::cuda
