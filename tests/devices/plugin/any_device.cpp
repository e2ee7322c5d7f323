// A plug-in for tests: any piece of square f32 matrices, by the loops that define its operators, in a memory of its
// own. Its target is called after the file that names it. ANY_DEVICE_LIES=WHAT makes it answer what no device may.
#include <opfuse/plugin.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

struct opfuse_kernel {
  struct Step {
    int result;
    std::string op;
    std::vector<int> operands;
  };
  size_t side = 0;
  std::vector<int> operands;  // then results
  std::map<int, float> scalars;
  std::vector<Step> steps;
};

struct opfuse_device {
  std::string target, error;
  std::map<opfuse_memory, std::vector<char>> memories;
  opfuse_memory next = 1;
};

namespace {

bool lies(const char* what) {
  const char* const asked = std::getenv("ANY_DEVICE_LIES");
  return asked && std::strcmp(asked, what) == 0;
}

int number(const std::string& word) { return std::atoi(word.c_str() + 1); }

const char* const kOps[] = {"add", "sub", "mul", "relu", "tanh", "neg", "sigmoid", "matmul", "transpose"};

bool read(const char* piece, opfuse_kernel& kernel, std::string& why) {
  std::istringstream lines(piece);
  std::string line;
  std::vector<int> results;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string what, id, type, word;
    words >> what >> id;
    if (what == "opfuse-piece" || what == "pattern" || what == "name") continue;
    if (what == "output") {
      results.push_back(number(id));
      continue;
    }
    words >> type >> word;
    if (what == "scalar") {
      kernel.scalars[number(id)] = std::strtof(word.c_str(), nullptr);
      continue;
    }
    size_t rows = 0, columns = 0;
    if (std::sscanf(type.c_str(), "f32[%zu,%zu]", &rows, &columns) != 2 || rows != columns)
      return why = "no square matrix: " + type, false;
    kernel.side = rows;
    if (what != "node") {
      kernel.operands.push_back(number(id));
      continue;
    }
    opfuse_kernel::Step step{number(id), word, {}};
    bool known = false;
    for (const char* op : kOps) known = known || word == op;
    if (!known) return why = "no loop for " + word, false;
    while (words >> word)
      if (word[0] == '%') step.operands.push_back(number(word));
    kernel.steps.push_back(step);
  }
  kernel.operands.insert(kernel.operands.end(), results.begin(), results.end());
  return true;
}

float elementwise(const std::string& op, float a, float b) {
  if (op == "add") return a + b;
  if (op == "sub") return a - b;
  if (op == "mul") return a * b;
  if (op == "relu") return a > 0 ? a : 0;
  if (op == "tanh") return std::tanh(a);
  if (op == "neg") return -a;
  return 1 / (1 + std::exp(-a));
}

}  // namespace

extern "C" {

uint32_t opfuse_plugin_abi(void) { return lies("abi") ? 7 : OPFUSE_PLUGIN_ABI; }

opfuse_plugin_status opfuse_plugin_open(const opfuse_host* host, opfuse_device** device) {
  if (lies("open")) return OPFUSE_PLUGIN_OK;  // and no device
  const std::string file = host->target_file;
  const size_t from = file.rfind('/') + 1;
  *device = new opfuse_device;
  (*device)->target = file.substr(from, file.rfind('.') - from);
  return OPFUSE_PLUGIN_OK;
}
opfuse_plugin_status opfuse_plugin_describe(opfuse_device* device, opfuse_description* about) {
  about->target = lies("describe") ? nullptr : lies("target") ? "another" : device->target.c_str();
  about->version = nullptr, about->memory_bytes = 0;
  return OPFUSE_PLUGIN_OK;
}
opfuse_plugin_status opfuse_plugin_accept(opfuse_device* device, const char* piece, char* reason, size_t size) {
  if (lies("accept")) std::memset(reason, 'x', size);  // without an end
  if (lies("accept")) return OPFUSE_PLUGIN_UNSUPPORTED;
  if (lies("status")) return 77;
  opfuse_kernel trial;
  if (lies("promise") || read(piece, trial, device->error)) return OPFUSE_PLUGIN_OK;
  std::strncpy(reason, device->error.c_str(), size - 1);
  return OPFUSE_PLUGIN_UNSUPPORTED;
}
opfuse_plugin_status opfuse_plugin_compile(opfuse_device* device, const char* piece, opfuse_kernel** kernel) {
  if (lies("compile")) return OPFUSE_PLUGIN_OK;  // and no kernel
  if (lies("promise")) return OPFUSE_PLUGIN_UNSUPPORTED;
  auto* const made = new opfuse_kernel;
  if (read(piece, *made, device->error)) return *kernel = made, OPFUSE_PLUGIN_OK;
  delete made;
  return OPFUSE_PLUGIN_UNSUPPORTED;
}
opfuse_plugin_status opfuse_plugin_allocate(opfuse_device* device, uint64_t bytes, opfuse_memory* memory) {
  if (lies("allocate")) return OPFUSE_PLUGIN_OK;  // and no memory
  device->memories[*memory = device->next++].resize(bytes);
  return OPFUSE_PLUGIN_OK;
}
opfuse_plugin_status opfuse_plugin_copy(opfuse_device* device, const opfuse_copy* copy) {
  if (lies("copy")) return -3;
  char* const own = device->memories.at(copy->memory).data() + copy->offset;
  std::memcpy(copy->to_device ? own : static_cast<char*>(copy->host), copy->to_device ? copy->host : own, copy->bytes);
  return OPFUSE_PLUGIN_OK;
}
opfuse_plugin_status opfuse_plugin_run(opfuse_device* device, const opfuse_launch* run) {
  if (lies("run")) return OPFUSE_PLUGIN_UNSUPPORTED;
  const opfuse_kernel& k = *run->kernel;
  const size_t n = k.side, all = n * n;
  std::map<int, std::vector<float>> values;
  for (const auto& [id, scalar] : k.scalars) values[id].assign(all, scalar);
  for (size_t i = 0; i < run->count; ++i) {
    const std::vector<char>& bytes = device->memories.at(run->memories[i]);
    if (bytes.size() < 4 * all) return OPFUSE_PLUGIN_INVALID;
    std::vector<float>& value = values[k.operands[i]];
    value.resize(all);
    std::memcpy(value.data(), bytes.data(), 4 * all);
  }
  for (const opfuse_kernel::Step& step : k.steps) {
    const std::vector<float> a = values.at(step.operands[0]), b = values.at(step.operands.back());
    std::vector<float> y(all);
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j) {
        float sum = 0;
        if (step.op == "matmul")
          for (size_t d = 0; d < n; ++d) sum += a[i * n + d] * b[d * n + j];
        y[i * n + j] = step.op == "matmul"      ? sum
                       : step.op == "transpose" ? a[j * n + i]
                                                : elementwise(step.op, a[i * n + j], b[i * n + j]);
      }
    values[step.result] = y;
  }
  for (size_t i = 0; i < run->count; ++i)
    std::memcpy(device->memories.at(run->memories[i]).data(), values.at(k.operands[i]).data(), 4 * all);
  return OPFUSE_PLUGIN_OK;
}
void opfuse_plugin_free(opfuse_device* device, opfuse_memory memory) { device->memories.erase(memory); }
void opfuse_plugin_destroy(opfuse_device*, opfuse_kernel* kernel) { delete kernel; }
void opfuse_plugin_close(opfuse_device* device) { delete device; }
const char* opfuse_plugin_error(opfuse_device* device) { return device ? device->error.c_str() : nullptr; }

}  // extern "C"
