// A made-up accelerator, played on the host: products of tiles of 16x16x16, in a memory of its own.
//
//   for tiles of rows, for tiles of columns:
//     the accumulator is loaded with the bias
//     for tiles of K: multiply and add; behind the last one: scale and shift, the activation, and the tile is stored
//
// A convolution is a product whose rows are pixels, and whose K are the channels and taps that a pixel sees: what loads
// tiles finds them in the image.
//
// Edges that are no multiples of 16 are padded with zeros inside a tile. What ran is written to the file that
// EXAMPLE_NPU_RECORD names, one line a call; with EXAMPLE_NPU_TRACE each tile too. EXAMPLE_NPU_FAIL=CALL makes a call
// fail, EXAMPLE_NPU_EARLY activates behind every tile of K, and EXAMPLE_NPU_ABI=N lies about the version: tests need
// that.
#include <opfuse/plugin.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr size_t kTile = 16;

enum class Activation { none, relu, gelu, gelu_tanh };

/// What a convolution's rows and depths are: pixels of images, taps of channels.
struct Window {
  bool given = false;
  size_t channels = 0, height = 0, width = 0, rows = 0, columns = 0;  // of an image, of the result
  size_t kernel[2] = {1, 1}, stride[2] = {1, 1}, dilation[2] = {1, 1}, pad[2] = {0, 0};
};

/// One product with what follows it; numbers are those of the piece's values.
struct Product {
  int x = 0, w = 0, bias = -1, result = 0;
  Window window;
  int norm[4] = {-1, -1, -1, -1};  // of a BatchNorm: scale, bias, mean, variance
  float epsilon = 0;
  bool transposed = false;  // weights are [N, K]
  Activation activation = Activation::none;
  size_t m = 0, n = 0, k = 0;
};

struct Value {
  std::vector<size_t> sizes;
  bool constant = false;
};

size_t elements(const std::vector<size_t>& sizes) {
  size_t count = 1;
  for (size_t s : sizes) count *= s;
  return count;
}

}  // namespace

struct opfuse_kernel {
  std::string name;
  std::vector<Product> products;
  std::vector<int> operands;  // values of the piece in the order of a run's memories
};

struct opfuse_device {
  std::map<opfuse_memory, std::vector<char>> memories;
  opfuse_memory next = 1;
  std::string error;
  FILE* record = nullptr;
  bool trace = false, early = false;
};

namespace {

std::string open_error;

bool fails(opfuse_device* device, const char* call) {
  const char* const asked = std::getenv("EXAMPLE_NPU_FAIL");
  if (!asked || std::strcmp(asked, call) != 0) return false;
  (device ? device->error : open_error) = std::string("asked to fail in ") + call;
  return true;
}

template <class... Args>
void record(opfuse_device* device, const char* format, Args... args) {
  if (!device->record) return;
  std::fprintf(device->record, format, args...);
  std::fflush(device->record);
}

/// "f32[8,768]" -> {8, 768}; false for another element type.
bool sizes_of(const std::string& type, std::vector<size_t>& sizes) {
  if (type.rfind("f32[", 0) != 0) return false;
  std::istringstream text(type.substr(4));
  for (size_t size = 0; text >> size; text.get()) sizes.push_back(size);
  return true;
}

/// Reads the text of a piece (docs/plugins.md) into products; says why where the device has no instruction for it.
class Reader {
 public:
  explicit Reader(opfuse_kernel& kernel) : kernel_(kernel) {}

  std::string read(const std::string& piece) {
    std::istringstream lines(piece);
    std::string line;
    if (!std::getline(lines, line) || line != "opfuse-piece 1") return "not a piece of version 1";
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      std::string what;
      words >> what;
      const std::string why = statement(what, words);
      if (!why.empty()) return why;
    }
    kernel_.operands.insert(kernel_.operands.end(), results_.begin(), results_.end());
    for (const Product& p : kernel_.products) {
      bool stored = false;
      for (int result : results_) stored = stored || result == p.result;
      if (!stored) return "a product is not a result of the piece";
    }
    return kernel_.products.empty() ? "no product" : "";
  }

 private:
  opfuse_kernel& kernel_;
  std::map<int, Value> values_;
  std::vector<int> results_;

  static int number(const std::string& word) {
    return word.size() > 1 && word[0] == '%' ? std::atoi(word.c_str() + 1) : -1;
  }

  std::string statement(const std::string& what, std::istringstream& words) {
    std::string id, type;
    if (what == "name") return words >> kernel_.name, "";
    if (what == "input" || what == "constant") {
      words >> id >> type;
      Value value;
      value.constant = what == "constant";
      if (!sizes_of(type, value.sizes)) return "an operand is " + type;
      values_[number(id)] = value;
      kernel_.operands.push_back(number(id));
    } else if (what == "output") {
      words >> id;
      results_.push_back(number(id));
    } else if (what == "node") {
      return node(words);
    } else if (what == "scalar") {
      return "a constant inside";
    }
    return "";
  }

  Product* product_of(int value) {
    for (Product& p : kernel_.products)
      if (p.result == value) return &p;
    return nullptr;
  }

  std::string node(std::istringstream& words) {
    std::string id, type, op, word, attributes;
    std::vector<int> operands;
    words >> id >> type >> op;
    while (words >> word)
      word[0] == '%' || word == "-" ? operands.push_back(number(word)) : void(attributes += " " + word);
    Value value;
    if (!sizes_of(type, value.sizes)) return "a result is " + type;
    values_[number(id)] = value;
    if (op == "matmul" || op == "gemm") return product(op, number(id), operands, attributes);
    if (op == "conv") return convolution(number(id), value, operands, attributes);
    if (op == "batch_norm") return batch_norm(number(id), operands, attributes);
    if (op == "add" && operands.size() == 2) return bias(number(id), operands);
    const bool relu = op == "relu", gelu = op == "gelu";
    Product* const p = operands.empty() ? nullptr : product_of(operands[0]);
    if ((!relu && !gelu) || !p || p->activation != Activation::none) return "no instruction for " + op;
    const bool tanh = attributes.find("tanh") != std::string::npos;
    p->activation = relu ? Activation::relu : tanh ? Activation::gelu_tanh : Activation::gelu;
    p->result = number(id);
    return "";
  }

  std::string product(const std::string& op, int result, const std::vector<int>& operands,
                      const std::string& attributes) {
    if (operands.size() < 2 || !values_.count(operands[0]) || !values_.count(operands[1]))
      return "a product of unknown values";
    Product p;
    p.x = operands[0], p.w = operands[1], p.result = result;
    if (op == "gemm") {
      if (attributes.find("alpha=") != std::string::npos || attributes.find("beta=") != std::string::npos ||
          attributes.find("transA=") != std::string::npos)
        return "a scaled or transposed product";
      p.transposed = attributes.find("transB=") != std::string::npos;
      if (operands.size() > 2) p.bias = operands[2];
    }
    const std::vector<size_t>&x = values_[p.x].sizes, &w = values_[p.w].sizes;
    if (!values_[p.w].constant || w.size() != 2 || x.size() < 2) return "weights that are no constant matrix";
    p.k = w[p.transposed ? 1 : 0], p.n = w[p.transposed ? 0 : 1];
    if (x.back() != p.k) return "sizes that do not fit";
    p.m = elements(x) / p.k;
    if (p.bias >= 0 && elements(values_[p.bias].sizes) != p.n) return "a bias that is no row";
    kernel_.products.push_back(p);
    return "";
  }

  /// "... strides=[2,2] ..." -> the numbers; none: it is left out.
  static std::vector<size_t> numbers_of(const std::string& attributes, const std::string& name) {
    const size_t at = attributes.find(" " + name + "=[");
    if (at == std::string::npos) return {};
    std::vector<size_t> numbers;
    std::istringstream text(attributes.substr(at + name.size() + 3));
    for (size_t number = 0; text >> number; text.get()) numbers.push_back(number);
    return numbers;
  }

  std::string convolution(int result, const Value& y, const std::vector<int>& operands, const std::string& attributes) {
    if (operands.size() < 2 || !values_.count(operands[0]) || !values_.count(operands[1]))
      return "a convolution of unknown values";
    const std::vector<size_t>&x = values_[operands[0]].sizes, &w = values_[operands[1]].sizes;
    if (!values_[operands[1]].constant || x.size() != 4 || w.size() != 4 || y.sizes.size() != 4 || x[1] != w[1])
      return "a convolution in groups, or of other than images";
    const std::vector<size_t> strides = numbers_of(attributes, "strides"), pads = numbers_of(attributes, "pads"),
                              dilations = numbers_of(attributes, "dilations");
    if (attributes.find("auto_pad") != std::string::npos) return "padding that is not given in numbers";
    Product p;
    p.x = operands[0], p.w = operands[1], p.result = result, p.transposed = true;
    if (operands.size() > 2) p.bias = operands[2];
    p.window = {true, x[1], x[2], x[3], y.sizes[2], y.sizes[3]};
    for (int d = 0; d < 2; ++d) {
      p.window.kernel[d] = w[2 + d];
      if (strides.size() == 2) p.window.stride[d] = strides[d];
      if (dilations.size() == 2) p.window.dilation[d] = dilations[d];
      if (pads.size() == 4) p.window.pad[d] = pads[d];
    }
    p.m = x[0] * y.sizes[2] * y.sizes[3], p.n = w[0], p.k = x[1] * w[2] * w[3];
    kernel_.products.push_back(p);
    return "";
  }

  /// The scale and shift of each column, behind the sums.
  std::string batch_norm(int result, const std::vector<int>& operands, const std::string& attributes) {
    Product* const p = operands.size() == 5 ? product_of(operands[0]) : nullptr;
    if (!p || p->norm[0] >= 0 || p->activation != Activation::none) return "a norm that is no scale of a product";
    for (int i = 0; i < 4; ++i) p->norm[i] = operands[1 + i];
    const size_t at = attributes.find(" epsilon=");
    p->epsilon = at == std::string::npos ? 1e-5f : std::strtof(attributes.c_str() + at + 9, nullptr);
    p->result = result;
    return "";
  }

  std::string bias(int result, const std::vector<int>& operands) {
    for (int side = 0; side < 2; ++side) {
      Product* const p = product_of(operands[side]);
      const int other = operands[1 - side];
      if (!p || p->bias >= 0 || p->activation != Activation::none || !values_.count(other)) continue;
      if (!values_[other].constant || elements(values_[other].sizes) != p->n) return "an addition that is no bias";
      p->bias = other, p->result = result;
      return "";
    }
    return "an addition that is no bias";
  }
};

float activated(float v, Activation activation) {
  switch (activation) {
    case Activation::relu:
      return v > 0 ? v : 0;
    case Activation::gelu:
      return 0.5f * v * (1 + std::erf(v * 0.70710678f));
    case Activation::gelu_tanh:
      return 0.5f * v * (1 + std::tanh(0.79788456f * (v + 0.044715f * v * v * v)));
    case Activation::none:
      break;
  }
  return v;
}

/// A tile of a matrix in the device's scratch, zeros beyond its edges.
void load_tile(float (&tile)[kTile][kTile], const float* from, size_t row, size_t rows, size_t column, size_t columns,
               bool transposed) {
  std::memset(tile, 0, sizeof tile);
  for (size_t i = 0; i < kTile && row + i < rows; ++i)
    for (size_t j = 0; j < kTile && column + j < columns; ++j)
      tile[i][j] = transposed ? from[(column + j) * rows + row + i] : from[(row + i) * columns + column + j];
}

/// The same of the pixels and taps of a convolution; taps outside of the image are zeros.
void load_pixels(float (&tile)[kTile][kTile], const Product& p, const float* x, size_t row, size_t depth) {
  std::memset(tile, 0, sizeof tile);
  const Window& v = p.window;
  const size_t pixels = v.rows * v.columns, taps = v.kernel[0] * v.kernel[1];
  for (size_t i = 0; i < kTile && row + i < p.m; ++i)
    for (size_t j = 0; j < kTile && depth + j < p.k; ++j) {
      const size_t image = (row + i) / pixels, pixel = (row + i) % pixels, channel = (depth + j) / taps;
      const size_t tap = (depth + j) % taps;
      const size_t h = pixel / v.columns * v.stride[0] + tap / v.kernel[1] * v.dilation[0] - v.pad[0];
      const size_t w = pixel % v.columns * v.stride[1] + tap % v.kernel[1] * v.dilation[1] - v.pad[1];
      if (h < v.height && w < v.width)  // those above and left of it are huge
        tile[i][j] = x[((image * v.channels + channel) * v.height + h) * v.width + w];
    }
}

/// Where an element of a product lies: rows one behind the other, or channels of images.
size_t place_of(const Product& p, size_t row, size_t column) {
  if (!p.window.given) return row * p.n + column;
  const size_t pixels = p.window.rows * p.window.columns;
  return (row / pixels * p.n + column) * pixels + row % pixels;
}

/// What a product reads and stores.
struct Operands {
  const float *x, *w, *bias, *norm[4];
  float* y;
};

struct Counts {
  long long tiles = 0, activations = 0, biases = 0;
};

void run_tile(opfuse_device* device, const Product& p, const Operands& at, size_t row, size_t column, Counts& counts) {
  float sums[kTile][kTile] = {}, a[kTile][kTile], b[kTile][kTile];
  if (at.bias) {
    ++counts.biases;
    for (size_t i = 0; i < kTile; ++i)
      for (size_t j = 0; j < kTile && column + j < p.n; ++j) sums[i][j] = at.bias[column + j];
  }
  for (size_t depth = 0; depth < p.k; depth += kTile) {
    if (p.window.given)
      load_pixels(a, p, at.x, row, depth);
    else
      load_tile(a, at.x, row, p.m, depth, p.k, false);
    load_tile(b, at.w, depth, p.k, column, p.n, p.transposed);
    for (size_t i = 0; i < kTile; ++i)
      for (size_t k = 0; k < kTile; ++k)
        for (size_t j = 0; j < kTile; ++j) sums[i][j] += a[i][k] * b[k][j];
    const bool last = depth + kTile >= p.k;
    const bool activates = (last || device->early) && p.activation != Activation::none;
    ++counts.tiles;
    counts.activations += activates;
    if (device->trace)
      record(device, "tile row=%zu column=%zu k=%zu last=%d activation=%d\n", row, column, depth, last, activates);
    if (last && at.norm[0])
      for (size_t j = 0; j < kTile && column + j < p.n; ++j) {
        const float scale = at.norm[0][column + j] / std::sqrt(at.norm[3][column + j] + p.epsilon);
        for (size_t i = 0; i < kTile; ++i)
          sums[i][j] = (sums[i][j] - at.norm[2][column + j]) * scale + at.norm[1][column + j];
      }
    if (!activates) continue;
    for (size_t i = 0; i < kTile; ++i)
      for (size_t j = 0; j < kTile; ++j) sums[i][j] = activated(sums[i][j], p.activation);
  }
  for (size_t i = 0; i < kTile && row + i < p.m; ++i)
    for (size_t j = 0; j < kTile && column + j < p.n; ++j) at.y[place_of(p, row + i, column + j)] = sums[i][j];
}

opfuse_plugin_status compile(opfuse_device* device, const char* piece, opfuse_kernel& kernel) {
  if (!device || !piece) return OPFUSE_PLUGIN_INVALID;
  device->error = Reader(kernel).read(piece);
  return device->error.empty() ? OPFUSE_PLUGIN_OK : OPFUSE_PLUGIN_UNSUPPORTED;
}

}  // namespace

extern "C" {

uint32_t opfuse_plugin_abi(void) {
  const char* const lie = std::getenv("EXAMPLE_NPU_ABI");
  return lie ? static_cast<uint32_t>(std::atoi(lie)) : OPFUSE_PLUGIN_ABI;
}

opfuse_plugin_status opfuse_plugin_open(const opfuse_host* host, opfuse_device** device) {
  if (!host || !device || host->size < sizeof(size_t) + sizeof(uint32_t) || host->abi != OPFUSE_PLUGIN_ABI)
    return OPFUSE_PLUGIN_INVALID;
  if (fails(nullptr, "open")) return OPFUSE_PLUGIN_FAILED;
  *device = new opfuse_device;
  if (const char* path = std::getenv("EXAMPLE_NPU_RECORD")) (*device)->record = std::fopen(path, "a");
  (*device)->trace = std::getenv("EXAMPLE_NPU_TRACE") != nullptr;
  (*device)->early = std::getenv("EXAMPLE_NPU_EARLY") != nullptr;
  return OPFUSE_PLUGIN_OK;
}

opfuse_plugin_status opfuse_plugin_describe(opfuse_device* device, opfuse_description* about) {
  if (fails(device, "describe")) return OPFUSE_PLUGIN_FAILED;
  about->target = "example-npu", about->version = "1", about->memory_bytes = 0;
  return OPFUSE_PLUGIN_OK;
}

opfuse_plugin_status opfuse_plugin_accept(opfuse_device* device, const char* piece, char* reason, size_t reason_size) {
  if (fails(device, "accept")) return OPFUSE_PLUGIN_FAILED;
  opfuse_kernel trial;
  const opfuse_plugin_status status = compile(device, piece, trial);
  if (reason && reason_size > 0) std::snprintf(reason, reason_size, "%s", device->error.c_str());
  return status;
}

opfuse_plugin_status opfuse_plugin_compile(opfuse_device* device, const char* piece, opfuse_kernel** kernel) {
  if (fails(device, "compile")) return OPFUSE_PLUGIN_FAILED;
  opfuse_kernel made;
  const opfuse_plugin_status status = compile(device, piece, made);
  if (status == OPFUSE_PLUGIN_OK) *kernel = new opfuse_kernel(std::move(made));
  return status;
}

opfuse_plugin_status opfuse_plugin_allocate(opfuse_device* device, uint64_t bytes, opfuse_memory* memory) {
  if (fails(device, "allocate")) return OPFUSE_PLUGIN_NO_MEMORY;
  *memory = device->next++;
  device->memories[*memory].resize(bytes);
  return OPFUSE_PLUGIN_OK;
}

opfuse_plugin_status opfuse_plugin_copy(opfuse_device* device, const opfuse_copy* copy) {
  if (fails(device, "copy")) return OPFUSE_PLUGIN_FAILED;
  const auto at = device->memories.find(copy->memory);
  if (at == device->memories.end() || copy->offset > at->second.size() ||
      copy->bytes > at->second.size() - copy->offset) {
    device->error = "a copy outside of its memory";
    return OPFUSE_PLUGIN_INVALID;
  }
  char* const own = at->second.data() + copy->offset;
  copy->to_device ? std::memcpy(own, copy->host, copy->bytes) : std::memcpy(copy->host, own, copy->bytes);
  record(device, "copy %s bytes=%llu\n", copy->to_device ? "in" : "out", static_cast<unsigned long long>(copy->bytes));
  return OPFUSE_PLUGIN_OK;
}

opfuse_plugin_status opfuse_plugin_run(opfuse_device* device, const opfuse_launch* run) {
  if (fails(device, "run")) return OPFUSE_PLUGIN_FAILED;
  if (run->count != run->kernel->operands.size())
    return device->error = "another number of memories", OPFUSE_PLUGIN_INVALID;
  std::map<int, float*> at;
  for (size_t i = 0; i < run->count; ++i) {
    const auto memory = device->memories.find(run->memories[i]);
    if (memory == device->memories.end()) return device->error = "a memory that is not there", OPFUSE_PLUGIN_INVALID;
    at[run->kernel->operands[i]] = reinterpret_cast<float*>(memory->second.data());
  }
  for (const Product& p : run->kernel->products) {
    Counts counts;
    Operands operands{at.at(p.x), at.at(p.w), p.bias < 0 ? nullptr : at.at(p.bias), {}, at.at(p.result)};
    for (int i = 0; i < 4; ++i) operands.norm[i] = p.norm[i] < 0 ? nullptr : at.at(p.norm[i]);
    for (size_t row = 0; row < p.m; row += kTile)
      for (size_t column = 0; column < p.n; column += kTile) run_tile(device, p, operands, row, column, counts);
    record(device, "run %s m=%zu n=%zu k=%zu tiles=%lld biases=%lld activations=%lld\n", run->kernel->name.c_str(), p.m,
           p.n, p.k, counts.tiles, counts.biases, counts.activations);
  }
  return OPFUSE_PLUGIN_OK;
}

void opfuse_plugin_free(opfuse_device* device, opfuse_memory memory) { device->memories.erase(memory); }
void opfuse_plugin_destroy(opfuse_device*, opfuse_kernel* kernel) { delete kernel; }
void opfuse_plugin_close(opfuse_device* device) {
  if (device->record) std::fclose(device->record);
  delete device;
}
const char* opfuse_plugin_error(opfuse_device* device) { return (device ? device->error : open_error).c_str(); }

}  // extern "C"
