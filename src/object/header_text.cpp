// The runtime of a standalone model is the text below: it walks the object's list of launches (object/standalone.cpp).
// NAME, FEATURES and the like are filled in.
#include "object/header_text.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/fail.hpp"

namespace opfuse {
namespace {

constexpr const char* kText = R"c(/* @MODEL@, compiled by @PRODUCER@ for @TARGET@. Link @NAME@.o; no library is needed.
 *
@TENSORS@ *
 *   void* workspace = aligned_alloc(64, @UPPER@_WORKSPACE_BYTES(1));
 *   if (@NAME@_supported()) @NAME@_run(inputs, outputs, workspace);
 */
#ifndef OPFUSE_MODEL_@NAME@_H
#define OPFUSE_MODEL_@NAME@_H

#include <stddef.h>
#include <stdint.h>
#include <cpuid.h>
@SYSTEM@
#ifdef __cplusplus
extern "C" {
#endif

#define @UPPER@_INPUTS @INPUTS@
#define @UPPER@_OUTPUTS @OUTPUTS@
@SIZES@/* Of one run with this many workers; aligned to 64 bytes. */
#define @UPPER@_WORKSPACE_BYTES(workers) ((size_t)@ARENA@ + (size_t)(workers) * @SCRATCH@)

extern const unsigned char @NAME@_code[], @NAME@_constants[];
extern const int64_t @NAME@_launches[];

static inline int @NAME@_cpuid7(unsigned subleaf, int word, int bit) {
  unsigned words[4] = {0, 0, 0, 0};
  __get_cpuid_count(7, subleaf, &words[0], &words[1], &words[2], &words[3]);
  return (int)(words[word] >> bit & 1u);
}

/* Whether this machine has what the code needs: @FEATURES@. */
static inline int @NAME@_supported(void) {
  __builtin_cpu_init();
  return 1@CHECKS@;
}

typedef void (*@NAME@_kernel)(void* const* pointers, const int64_t* symbols, char* scratch, int64_t part, int64_t parts);
typedef struct @NAME@_call {
  @NAME@_kernel kernel;
  void* pointers[@MOST@];
  char* scratch;
  int64_t parts;
} @NAME@_call;

/* One part of a launch, on worker 0, 1 .. */
static inline void @NAME@_part(void* call, int64_t part, int worker) {
  @NAME@_call* c = (@NAME@_call*)call;
  c->kernel(c->pointers, NULL, c->scratch + (size_t)worker * @SCRATCH@, part, c->parts);
}

/* Runs work(call, part, worker) for all parts, in any order and at the same time, and returns when all are done. */
typedef void (*@NAME@_parallel)(void* user, int64_t parts, void (*work)(void* call, int64_t part, int worker), void* call);

/* Inputs and outputs are dense, row-major, in the order above. `parallel` NULL: on the caller's thread. */
static inline void @NAME@_run_parallel(const void* const* inputs, void* const* outputs, void* workspace,
                                       @NAME@_parallel parallel, void* user) {
  const int64_t* at = @NAME@_launches;
  char* arena = (char*)workspace;
  @NAME@_call call;
  int64_t launch, part;
  call.scratch = arena + @ARENA@;
  for (launch = 0; launch < @LAUNCHES@; ++launch) {
    const int64_t count = at[2];
    int64_t i;
    call.kernel = (@NAME@_kernel)(uintptr_t)(@NAME@_code + at[0]);
    call.parts = at[1];
    for (i = 0, at += 3; i < count; ++i, at += 3) {
      char* base = at[0] == 0   ? (char*)(uintptr_t)inputs[at[1]]
                   : at[0] == 1 ? (char*)outputs[at[1]]
                   : at[0] == 2 ? (char*)(uintptr_t)@NAME@_constants
                                : arena;
      call.pointers[i] = at[0] == 4 ? NULL : base + at[2];
    }
    if (parallel)
      parallel(user, call.parts, @NAME@_part, &call);
    else
      for (part = 0; part < call.parts; ++part) @NAME@_part(&call, part, 0);
  }
}

static inline void @NAME@_run(const void* const* inputs, void* const* outputs, void* workspace) {
  @NAME@_run_parallel(inputs, outputs, workspace, NULL, NULL);
}

#ifdef __cplusplus
}
#endif
#endif
)c";

/// How C asks for a feature: the compiler's run time, which also asks whether the system keeps the registers, or a bit
/// of CPUID's leaf 7.
struct FeatureCheck {
  const char* feature;
  const char* check;
};
constexpr FeatureCheck kChecks[] = {
    {"sse2", "__builtin_cpu_supports(\"sse2\")"},
    {"avx2", "__builtin_cpu_supports(\"avx2\")"},
    {"fma", "__builtin_cpu_supports(\"fma\")"},
    {"avx512f", "__builtin_cpu_supports(\"avx512f\")"},
    {"avx512vl", "__builtin_cpu_supports(\"avx512vl\")"},
    {"avx512bw", "__builtin_cpu_supports(\"avx512bw\")"},
    {"avx512dq", "__builtin_cpu_supports(\"avx512dq\")"},
    {"avx512vnni", "@NAME@_cpuid7(0, 2, 11)"},
    {"avx512vbmi", "@NAME@_cpuid7(0, 2, 1)"},
    {"avx512bf16", "@NAME@_cpuid7(1, 0, 5)"},
    {"avx512fp16", "@NAME@_cpuid7(0, 3, 23)"},
    {"avxvnni", "@NAME@_cpuid7(1, 0, 4)"},
    // The system keeps the matrix registers for processes that ask for them.
    {"amx-tile", "@NAME@_cpuid7(0, 3, 24) && syscall(SYS_arch_prctl, 0x1023, 18) == 0"},
    {"amx-int8", "@NAME@_cpuid7(0, 3, 25)"},
    {"amx-bf16", "@NAME@_cpuid7(0, 3, 22)"},
};

std::string check_of(const std::string& feature) {
  for (const FeatureCheck& row : kChecks)
    if (feature == row.feature) return std::string(" &&\n         ") + row.check;
  throw fail(E::internal, "the header has no check for the CPU feature {}", feature);
}

void fill(std::string& text, const std::string& field, const std::string& value) {
  const std::string mark = "@" + field + "@";
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size()))
    text.replace(at, mark.size(), value);
}

std::string tensor_lines(const Artifact& a) {
  std::string lines;
  for (size_t i = 0; i < a.inputs.size(); ++i)
    lines += fmt::format(" *   inputs[{}]   {} : {}\n", i, a.inputs[i].name, a.inputs[i].type.text());
  for (size_t i = 0; i < a.outputs.size(); ++i)
    lines += fmt::format(" *   outputs[{}]  {} : {}\n", i, a.outputs[i].name, a.outputs[i].type.text());
  for (size_t at = lines.find("*/"); at != std::string::npos; at = lines.find("*/")) lines.replace(at, 2, "* /");
  return lines;
}

int64_t bytes_of(const ArtifactTensor& tensor) {
  int64_t bytes = static_cast<int64_t>(byte_size(tensor.type.dtype));
  for (int64_t size : tensor.type.shape.evaluate({})) bytes *= size;
  return bytes;
}

std::string size_lines(const Artifact& a, const std::string& upper) {
  std::string lines;
  for (size_t i = 0; i < a.inputs.size(); ++i)
    lines += fmt::format("#define {}_INPUT_{}_BYTES {}\n", upper, i, bytes_of(a.inputs[i]));
  for (size_t i = 0; i < a.outputs.size(); ++i)
    lines += fmt::format("#define {}_OUTPUT_{}_BYTES {}\n", upper, i, bytes_of(a.outputs[i]));
  return lines;
}

}  // namespace

std::string header_text(const Artifact& a, const std::string& name, int64_t launches) {
  constexpr int64_t kLine = 64;
  const auto whole = [](int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; };
  int64_t scratch = 0;
  size_t most = 1;
  for (const ArtifactLaunch& launch : a.launches) {
    scratch = std::max(scratch, launch.scratch_bytes);
    most = std::max(most, launch.buffers.size());
  }
  std::string upper = name, features, checks, text = kText, model = a.model_name.empty() ? "A model" : a.model_name;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (char& c : model)
    if (c == '*' || c == '\\' || static_cast<unsigned char>(c) < ' ') c = '_';
  for (const std::string& feature : a.cpu_features) {
    features += (features.empty() ? "" : ", ") + feature;
    checks += check_of(feature);
  }
  const auto number = [](auto value) { return std::to_string(value); };
  const bool asks = checks.find("syscall") != std::string::npos;
  const std::pair<const char*, std::string> fields[] = {
      {"CHECKS", checks},
      {"SYSTEM", asks ? "#include <sys/syscall.h>\n#include <unistd.h>\n" : ""},
      {"NAME", name},
      {"UPPER", upper},
      {"PRODUCER", a.producer},
      {"TARGET", a.target},
      {"INPUTS", number(a.inputs.size())},
      {"OUTPUTS", number(a.outputs.size())},
      {"SIZES", size_lines(a, upper)},
      {"ARENA", number(whole(a.arena_bytes.value()))},
      {"SCRATCH", number(whole(scratch))},
      {"FEATURES", features.empty() ? "nothing" : features},
      {"MOST", number(most)},
      {"LAUNCHES", number(launches)},
      {"TENSORS", tensor_lines(a)},
      {"MODEL", model}};
  for (const auto& [field, value] : fields) fill(text, field, value);
  return text;
}

}  // namespace opfuse
