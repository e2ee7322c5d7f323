#include "codegen/run_kernel.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "base/fail.hpp"
#include "codegen/fenced.hpp"
#include "testing/kernel_operands.hpp"
#include "testing/runs_here.hpp"

namespace opfuse::test {
namespace {

std::vector<int64_t> symbol_arguments(const KernelSpec& spec, const SymbolValues& values) {
  std::vector<int64_t> arguments;
  for (const std::string& s : spec.symbols) arguments.push_back(values.at(s));
  arguments.push_back(0);
  return arguments;
}

void compare(const Tensor& got, const Tensor& want, const Case& c, const std::string& where) {
  if (!is_float(got.dtype())) {
    for (int64_t i = 0; i < got.elements(); ++i)
      ASSERT_EQ(got.integer(i), want.integer(i)) << where << " element " << i;
    return;
  }
  const Difference d = difference(got, want);
  EXPECT_LE(d.max_abs, c.tolerance * std::max(d.max_reference, 1e-30))
      << where << ": " << (d.at < 0 ? 0 : got.real(d.at)) << " for " << (d.at < 0 ? 0 : want.real(d.at)) << " at "
      << d.at;
}

void run_binding(const Case& c, const KernelSpec& spec, const LinkedCode& code, const LoadedCode& loaded,
                 const SymbolValues& symbols, uint32_t seed) {
  const Region& region = spec.region;
  std::vector<Tensor> operands;
  std::vector<Fenced> buffers;
  std::vector<void*> pointers;
  for (size_t p = 0; p < region.params.size(); ++p) {
    const Param& param = region.params[p];
    const auto sizes = param.type.shape.evaluate(symbols);
    Tensor t = p < c.operands.size() && !c.operands[p].empty()
                   ? c.operands[p]
                   : random_operand(param.type.dtype, sizes, c.low, c.high, seed + static_cast<uint32_t>(p));
    if (param.role == ParamRole::output) t = Tensor(param.type.dtype, sizes);
    operands.push_back(t);
    const Tensor packed = pack(t, spec.layouts[p].layout);
    buffers.emplace_back(packed.bytes());
    if (param.role != ParamRole::output && packed.bytes())
      std::memcpy(buffers.back().data(), packed.data(), packed.bytes());
    else
      std::memset(buffers.back().data(), 0x7F, packed.bytes());
  }
  for (const Fenced& b : buffers) pointers.push_back(b.data());
  if (c.in_place.first >= 0) pointers.at(c.in_place.first) = pointers.at(c.in_place.second);
  const KernelCode& kernel = code.kernels.at(0);
  Fenced scratch(static_cast<size_t>(kernel.scratch_bytes));
  const auto arguments = symbol_arguments(spec, symbols);
  const int64_t parts = kernel.parts.evaluate(symbols);
  ASSERT_GE(parts, 1);
  for (int64_t part = parts; part-- > 0;)  // any order
    loaded.at(kernel.offset)(pointers.data(), arguments.data(), reinterpret_cast<char*>(scratch.data()), part, parts);
  EXPECT_TRUE(scratch.intact()) << "scratch overrun";
  std::vector<Tensor> want = interpret(region, operands, symbols, c.precision);
  size_t next = 0;
  for (size_t p = 0; p < region.params.size(); ++p) {
    EXPECT_TRUE(buffers[p].intact()) << "parameter " << p << " overrun";
    if (region.params[p].role != ParamRole::output) continue;
    const auto sizes = region.params[p].type.shape.evaluate(symbols);
    const Tensor shape_of_pack = pack(operands[p], spec.layouts[p].layout);
    const Tensor packed = Tensor::wrap(region.params[p].type.dtype, shape_of_pack.sizes(), pointers[p], nullptr);
    const Tensor got = unpack(packed, spec.layouts[p].layout, sizes);
    compare(got, want.at(next++), c, "output " + std::to_string(p));
    EXPECT_TRUE(pack(got, spec.layouts[p].layout).same_bits(packed))
        << "padding lanes of output " << p << " are not zero";
  }
}

}  // namespace

LoadedCode::LoadedCode(const LinkedCode& code) : size_((code.bytes.size() + 4095) / 4096 * 4096) {
  memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  OPFUSE_CHECK(memory_ != MAP_FAILED);
  std::memcpy(memory_, code.bytes.data(), code.bytes.size());
  OPFUSE_CHECK(mprotect(memory_, size_, PROT_READ | PROT_EXEC) == 0);
}

LoadedCode::~LoadedCode() { munmap(memory_, size_); }

KernelSpec spec_of(const Case& c, const TargetInfo& target) {
  KernelSpec spec;
  spec.region = parse_region(c.region);
  const LayoutWish wish = wish_layouts(spec.region, target);
  for (size_t p = 0; p < spec.region.params.size(); ++p) {
    const Shape& shape = spec.region.params[p].type.shape;
    Layout layout = Layout::dense(shape.rank());
    if (p < c.layouts.size() && !c.layouts[p].empty())
      layout = Layout::parse(c.layouts[p]);
    else if (c.wished && wish.params.at(p))
      layout = *wish.params[p];
    spec.layouts.push_back({layout, dense_strides(layout, shape)});
  }
  for (const std::string& s : spec.region.symbols()) spec.symbols.push_back(s);
  spec.schedule = choose_schedule(spec.region, spec.layouts, target);
  return spec;
}

void check_case(const Case& c, const TargetInfo& target) { check_spec(c, spec_of(c, target), target); }

void check_spec(const Case& c, const KernelSpec& spec, const TargetInfo& target) {
  verify(spec.region);
  ASSERT_FALSE(cannot_generate(spec.region, target).has_value()) << *cannot_generate(spec.region, target);
  CodegenOptions options;
  options.emit_llvm = std::getenv("OPFUSE_TEST_IR") != nullptr;
  options.emit_assembly = options.emit_llvm;
  const LinkedCode code = generate({spec}, target, options);
  if (options.emit_llvm)
    fprintf(stderr, "%s\n%s\n%s\n", spec.text().c_str(), code.kernels[0].llvm_ir.c_str(),
            code.kernels[0].assembly.c_str());
  const LoadedCode loaded(code);
  uint32_t seed = 1;
  for (const SymbolValues& symbols : c.bindings) {
    std::string where;
    for (const auto& [name, value] : symbols) where += name + "=" + std::to_string(value) + " ";
    SCOPED_TRACE(where + "schedule " + spec.schedule.text());
    run_binding(c, spec, code, loaded, symbols, seed += 100);
  }
}

std::vector<TargetInfo> runnable_targets() { return targets_here({"cpu:avx512", "cpu:avx2", "cpu:baseline"}); }

std::string case_name(const Case& c, const TargetInfo& target) {
  std::string name = c.name + "_" + target.name;
  for (char& x : name)
    if (!std::isalnum(static_cast<unsigned char>(x))) x = '_';
  return name;
}

}  // namespace opfuse::test
