// Every skeleton on the emulated device against the region interpreter.
#include "cuda/emulated.hpp"

namespace opfuse::test {
namespace {

TEST(EmulatedKernels, maps_equal_the_interpreter) { check_cases(map_cases()); }
TEST(EmulatedKernels, rows_equal_the_interpreter) { check_cases(row_cases()); }
TEST(EmulatedKernels, windows_equal_the_interpreter) { check_cases(window_cases()); }
TEST(EmulatedKernels, contractions_equal_the_interpreter) { check_cases(contraction_cases()); }
TEST(EmulatedKernels, attention_equals_the_interpreter) { check_cases(attention_cases()); }
TEST(EmulatedKernels, norms_behind_depthwise_convolutions_equal_the_interpreter) { check_cases(window_rows_cases()); }
TEST(EmulatedKernels, products_of_four_warps_equal_the_interpreter) { check_cases(hopper_cases()); }
TEST(EmulatedKernels, tensor_core_contractions_equal_the_interpreter) { check_cases(tensor_core_cases()); }

}  // namespace
}  // namespace opfuse::test
