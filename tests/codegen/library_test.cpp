// The generated code as an object: deterministic, self-contained, named after its content; the door to
// the code generator library.
#include <cstdlib>

#include "codegen/regions.hpp"
#include "codegen/run_kernel.hpp"
#include "opfuse/error.hpp"

namespace opfuse::test {
namespace {

Case conv(int channels) {
  Case c;
  c.region = conv_region({.c = channels, .h = 9, .w = 9, .o = 32});
  c.wished = true;
  return c;
}

TEST(GeneratedCode, is_the_same_bytes_every_time_at_any_number_of_threads) {
  for (const TargetInfo& target : runnable_targets()) {
    std::vector<KernelSpec> specs;
    for (int channels : {3, 16, 20, 64}) specs.push_back(spec_of(conv(channels), target));
    CodegenOptions one, four;
    one.threads = 1;
    four.threads = 4;
    const LinkedCode a = generate(specs, target, one), b = generate(specs, target, four);
    EXPECT_EQ(a.bytes, b.bytes) << target.name;
    for (size_t i = 0; i < specs.size(); ++i) EXPECT_EQ(a.kernels[i].symbol, b.kernels[i].symbol);
  }
}

TEST(GeneratedCode, has_no_undefined_symbol_for_any_operation_on_any_target) {
  // linking throws for an undefined symbol; every operation of floats is in here
  const std::string shape = "[67]";
  for (const char* name : {"cpu:avx512", "cpu:avx2", "cpu:baseline"})
    for (const std::string dtype : {"f32", "f64", "f16"}) {
      const std::string x = dtype == "f32" ? "r0" : "r0:" + dtype;
      for (const std::string op : {"exp", "log", "tanh", "sin", "cos", "floor", "ceil", "round_even", "sqrt", "sign"}) {
        const Case c{.name = op,
                     .region = "region\nparam input " + dtype + shape + "\nparam output " + dtype + shape +
                               "\nstage map\n  domain " + shape + "\n  read param 0 at [a0]\n  output param 1 " +
                               dtype + shape + " at [a0] = " + op + "(" + x + ")\n"};
        const TargetInfo target = parse_target(name);
        EXPECT_NO_THROW(generate({spec_of(c, target)}, target, {})) << name << " " << dtype << " " << op;
      }
      for (const std::string op : {"pow", "fmod", "mod", "min", "max", "div"}) {
        const Case c{.name = op,
                     .region = "region\nparam input " + dtype + shape + "\nparam output " + dtype + shape +
                               "\nstage map\n  domain " + shape + "\n  read param 0 at [a0]\n  output param 1 " +
                               dtype + shape + " at [a0] = " + op + "(" + x + ", add(" + x + ", " + x + "))\n"};
        const TargetInfo target = parse_target(name);
        EXPECT_NO_THROW(generate({spec_of(c, target)}, target, {})) << name << " " << dtype << " " << op;
      }
    }
}

TEST(GeneratedCode, shows_its_ir_and_assembly_when_asked) {
  CodegenOptions options;
  options.emit_llvm = options.emit_assembly = true;
  const TargetInfo target = parse_target("cpu:avx2");
  const LinkedCode code = generate({spec_of(conv(16), target)}, target, options);
  EXPECT_THAT(code.kernels[0].llvm_ir, testing::HasSubstr("define void @conv_"));
  EXPECT_THAT(code.kernels[0].assembly, testing::HasSubstr("vfmadd"));
}

TEST(GeneratedCode, of_an_elementwise_kernel_over_equal_layouts_has_one_loop_axis) {
  const TargetInfo target = host_target();
  const Case c{
      .name = "relu",
      .region =
          "region\nparam input f32[2,3,5,7]\nparam output f32[2,3,5,7]\nstage map\n  domain [2,3,5,7]\n"
          "  read param 0 at [a0, a1, a2, a3]\n  output param 1 f32[2,3,5,7] at [a0, a1, a2, a3] = max(r0, 0)\n"};
  CodegenOptions options;
  options.emit_llvm = true;
  const LinkedCode code = generate({spec_of(c, target)}, target, options);
  EXPECT_THAT(code.kernels[0].llvm_ir, testing::Not(testing::HasSubstr("urem")));
}

TEST(Progress, is_reported_for_every_kernel) {
  const TargetInfo target = host_target();
  size_t last = 0;
  CodegenOptions options;
  options.progress = [&](size_t done, size_t total) {
    EXPECT_EQ(total, 3u);
    last = std::max(last, done);
  };
  generate({spec_of(conv(3), target), spec_of(conv(16), target), spec_of(conv(32), target)}, target, options);
  EXPECT_EQ(last, 3u);
}

}  // namespace
}  // namespace opfuse::test
