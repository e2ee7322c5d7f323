/* Loads a compiled model, runs it once on zeros and prints the largest value of each output.
 *
 *   opfuse compile zoo:resnet18 -o resnet18.opf
 *   cc run_in_c.c -lopfuse_runtime -o run_in_c && ./run_in_c resnet18.opf
 */
#include <opfuse/opfuse.h>
#include <stdio.h>
#include <stdlib.h>

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, opfuse_last_error());
  return 1;
}

static size_t elements_of(const int64_t* shape, int32_t rank) {
  size_t count = 1;
  for (int32_t i = 0; i < rank; ++i) count *= (size_t)shape[i];
  return count;
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "run_in_c MODEL.opf\n"), 2;
  if (opfuse_check_abi(OPFUSE_ABI) != OPFUSE_OK) return failed("libopfuse_runtime");

  opfuse_executable* model = NULL;
  if (opfuse_load(argv[1], &model) != OPFUSE_OK) return failed("load");
  opfuse_context* context = NULL;
  const opfuse_context_options options = {.size = sizeof options, .threads = 1};
  if (opfuse_context_create(model, &options, &context) != OPFUSE_OK) return failed("context");

  void* inputs[16] = {0};
  for (size_t i = 0; i < opfuse_input_count(model) && i < 16; ++i) {
    opfuse_tensor_info info = {.size = sizeof info};
    if (opfuse_input_info(model, i, &info) != OPFUSE_OK) return failed("input");
    inputs[i] = calloc(elements_of(info.shape, info.rank), 8);
    const opfuse_array array = {sizeof array, info.type, info.rank, info.shape, inputs[i]};
    if (opfuse_bind(context, info.name, &array) != OPFUSE_OK) return failed(info.name);
  }
  if (opfuse_run(context) != OPFUSE_OK) return failed("run");

  for (size_t i = 0; i < opfuse_output_count(model); ++i) {
    opfuse_tensor_info info = {.size = sizeof info};
    opfuse_array array = {.size = sizeof array};
    if (opfuse_output_info(model, i, &info) != OPFUSE_OK) return failed("output");
    if (opfuse_output(context, info.name, &array) != OPFUSE_OK) return failed(info.name);
    const float* values = array.data;
    size_t best = 0, count = elements_of(array.shape, array.rank);
    if (array.type != OPFUSE_F32 || count == 0) continue;
    for (size_t k = 1; k < count; ++k)
      if (values[k] > values[best]) best = k;
    printf("%s: %zu values, the largest is %g at %zu\n", info.name, count, values[best], best);
  }
  for (size_t i = 0; i < 16; ++i) free(inputs[i]);
  opfuse_context_free(context);
  opfuse_free(model);
  return 0;
}
