#include "cuda/emulated.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "device/tensor_maps.hpp"
#include "testing/kernel_operands.hpp"

namespace opfuse::test {
namespace {

constexpr size_t kDeviceAlignment = 256;

std::string compare(const Tensor& got, const Tensor& want, const CudaCase& c) {
  if (!is_float(got.dtype())) {
    for (int64_t i = 0; i < got.elements(); ++i)
      if (got.integer(i) != want.integer(i))
        return fmt::format("{} for {} at element {}", got.integer(i), want.integer(i), i);
    return {};
  }
  const Difference d = difference(got, want);
  if (d.max_abs <= c.tolerance * std::max(d.max_reference, 1e-30)) return {};
  return fmt::format("error {:.3g} of {:.3g}: {} for {} at element {}", d.max_abs, d.max_reference,
                     d.at < 0 ? 0 : got.real(d.at), d.at < 0 ? 0 : want.real(d.at), d.at);
}

struct Operands {
  std::vector<Tensor> tensors;
  std::vector<Guarded> buffers;
  std::vector<void*> pointers;
};

Operands make_operands(const CudaCase& c, const KernelSpec& spec, const SymbolValues& symbols, uint32_t seed) {
  Operands o;
  for (size_t p = 0; p < spec.region.params.size(); ++p) {
    const Param& param = spec.region.params[p];
    const auto sizes = param.type.shape.evaluate(symbols);
    const bool output = param.role == ParamRole::output;
    o.tensors.push_back(output ? Tensor(param.type.dtype, sizes)
                        : c.given.count(static_cast<int>(p))
                            ? c.given.at(static_cast<int>(p))
                            : random_operand(param.type.dtype, sizes, c.low, c.high, seed + static_cast<uint32_t>(p)));
    const Tensor packed = pack(o.tensors.back(), spec.layouts[p].layout);
    o.buffers.emplace_back(packed.bytes(), kDeviceAlignment);
    if (output)
      std::memset(o.buffers.back().data(), 0xFF, packed.bytes());
    else if (packed.bytes())
      std::memcpy(o.buffers.back().data(), packed.data(), packed.bytes());
  }
  for (Guarded& b : o.buffers) o.pointers.push_back(b.data());
  return o;
}

std::string run_binding(const CudaCase& c, const KernelSpec& spec, const cuda::KernelText& kernel,
                        const cuda::EmulatedModule& module, const SymbolValues& symbols, uint32_t seed, int order,
                        std::vector<Tensor>& want) {
  Operands o = make_operands(c, spec, symbols, seed);
  std::vector<int64_t> sizes;
  for (const std::string& s : spec.symbols) sizes.push_back(symbols.at(s));
  std::vector<void*> arguments;
  for (void*& p : o.pointers) arguments.push_back(&p);
  for (int64_t& s : sizes) arguments.push_back(&s);
  std::vector<cuda::CuTensorMap> maps;
  for (const TensorMap& map : kernel.maps)
    maps.push_back(cuda::encode(cuda::fake_driver(), map,
                                reinterpret_cast<uintptr_t>(o.pointers.at(static_cast<size_t>(map.buffer))), symbols));
  for (cuda::CuTensorMap& map : maps) arguments.push_back(&map);
  // of the first block: copies land as late as they may, then as early, then each by a lot of its own
  const uint64_t lot = static_cast<uint64_t>(order) * 1000003 + seed - seed % 3;
  const auto entry = module.find(kernel.symbol);
  if (!entry) return "the kernel is not in the image";
  try {
    module.launch(entry,
                  {.grid = static_cast<unsigned>(kernel.grid.evaluate(symbols)),
                   .block = static_cast<unsigned>(kernel.block),
                   .shared = static_cast<size_t>(kernel.launch_shared.evaluate(symbols))},
                  arguments.data(), lot);
  } catch (const cuda::EmulationError& e) {
    return e.message;
  }
  if (want.empty()) want = interpret(spec.region, o.tensors, symbols, Precision::exact);
  size_t next = 0;
  for (size_t p = 0; p < spec.region.params.size(); ++p) {
    if (!o.buffers[p].intact()) return fmt::format("parameter {} overrun", p);
    if (spec.region.params[p].role != ParamRole::output) continue;
    const Tensor shape = pack(o.tensors[p], spec.layouts[p].layout);
    const Tensor packed = Tensor::wrap(spec.region.params[p].type.dtype, shape.sizes(), o.buffers[p].data(), nullptr);
    const Tensor got = unpack(packed, spec.layouts[p].layout, spec.region.params[p].type.shape.evaluate(symbols));
    if (std::string why = compare(got, want.at(next++), c); !why.empty()) return fmt::format("output {}: {}", p, why);
  }
  return {};
}

}  // namespace

TargetInfo emulated_target() { return parse_target("cuda:emulated"); }

KernelSpec spec_of(const CudaCase& c, const TargetInfo& target) {
  KernelSpec spec;
  spec.region = parse_region(c.region);
  verify(spec.region);
  const LayoutWish wish = cuda::wish_layouts(spec.region, target);
  for (size_t p = 0; p < spec.region.params.size(); ++p) {
    const Shape& shape = spec.region.params[p].type.shape;
    const Layout layout = wish.params[p] ? *wish.params[p] : Layout::dense(shape.rank());
    spec.layouts.push_back({layout, dense_strides(layout, shape)});
  }
  for (const std::string& s : spec.region.symbols()) spec.symbols.push_back(s);
  spec.schedule = c.schedule.knobs.empty() ? cuda::choose_schedule(spec.region, spec.layouts, target) : c.schedule;
  return spec;
}

std::vector<KernelSpec> specs_of(const std::vector<CudaCase>& cases, const TargetInfo& target) {
  std::vector<KernelSpec> specs;
  for (const CudaCase& c : cases) specs.push_back(spec_of(c, target));
  return specs;
}

std::string run_case(const CudaCase& c, const KernelSpec& spec, const cuda::KernelText& kernel,
                     const cuda::EmulatedModule& module, int orders) {
  uint32_t seed = 1;
  for (const SymbolValues& symbols : c.bindings) {
    std::string where;
    for (const auto& [name, value] : symbols) where += fmt::format("{}={} ", name, value);
    seed += 100;
    static std::map<std::string, std::vector<Tensor>> known;  // the interpreter is asked once per case
    std::vector<Tensor>& want = known[c.name + " " + where];
    for (int order = 0; order < orders; ++order)
      if (std::string why = run_binding(c, spec, kernel, module, symbols, seed, order, want); !why.empty())
        return where + why;
  }
  return {};
}

void check_cases(const std::vector<CudaCase>& cases) {
  const TargetInfo target = emulated_target();
  const std::vector<KernelSpec> specs = specs_of(cases, target);
  std::vector<cuda::KernelText> kernels, distinct;
  std::set<std::string> seen;
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cuda::cannot_generate(specs[i].region, target).value_or(""), "") << cases[i].name;
    kernels.push_back(cuda::write_kernel(specs[i], target));
    if (seen.insert(kernels.back().symbol).second) distinct.push_back(kernels.back());
  }
  const std::vector<uint8_t> image = cuda::compile_for_emulation(distinct);
  const cuda::EmulatedModule module(image);
  for (size_t i = 0; i < cases.size(); ++i)
    EXPECT_EQ(run_case(cases[i], specs[i], kernels[i], module), "")
        << cases[i].name << " schedule " << specs[i].schedule.text();
}

std::vector<const std::vector<CudaCase>*> case_groups() {
  return {&map_cases(),         &row_cases(),       &window_cases(),     &contraction_cases(),
          &tensor_core_cases(), &attention_cases(), &window_rows_cases()};
}

std::vector<CudaCase> all_cases() {
  std::vector<CudaCase> all;
  for (const auto* cases : case_groups()) all.insert(all.end(), cases->begin(), cases->end());
  return all;
}

}  // namespace opfuse::test
