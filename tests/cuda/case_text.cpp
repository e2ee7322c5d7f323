// Regions of another type, products with a batch.
#include "cuda/case_text.hpp"

#include <cctype>

namespace opfuse::test {

std::string typed(const std::string& text, const std::string& dtype) {
  if (dtype == "f32") return text;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '.')) ++end;
    const std::string word = text.substr(at, end - at);
    out += word;
    const bool leaf =
        word.size() > 1 && (word[0] == 'r' || word[0] == 's') && std::isdigit(static_cast<unsigned char>(word[1]));
    const bool open = end == text.size() || text[end] != ':';  // of no type yet
    if (open && (leaf || word == "inf" || (!word.empty() && std::isdigit(static_cast<unsigned char>(word[0])))))
      out += ":" + dtype;
    if (end == at) out += text[end++];
    at = end;
  }
  return out;
}

std::string retyped(const std::string& text, const std::string& dtype) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1);
    std::string line = text.substr(at, end + 1 - at);
    for (size_t f = 0; (f = line.find("f32", f)) != std::string::npos; f += dtype.size()) line.replace(f, 3, dtype);
    const size_t reduction = line.find("reduction ");
    const size_t value = reduction != std::string::npos ? line.find(' ', reduction + 10) : line.find(" = ");
    if (value != std::string::npos) line = line.substr(0, value) + typed(line.substr(value), dtype);
    out += line;
    at = end + 1;
  }
  return out;
}

std::string batched_text(const std::string& b, int m, int n, int k) {
  return fmt::format(
      "region\nparam input f32[{0},{1},{3}]\nparam input f32[{0},{3},{2}]\nparam output f32[{0},{1},{2}]\n"
      "stage contraction\n  domain [{0},{1},{2}]\n  reduce [{3}]\n  read param 0 at [a0, a1, a3]\n"
      "  read param 1 at [a0, a3, a2]\n  reduction sum mul(r0, r1)\n"
      "  output param 2 f32[{0},{1},{2}] at [a0, a1, a2] = mul(s0, 0.125)\n",
      b, m, n, k);
}

CudaCase with(CudaCase c, double low, double high) {
  c.low = low;
  c.high = high;
  return c;
}

CudaCase half(const std::string& name, const std::string& region, Bindings bindings) {
  return {.name = name, .region = retyped(region, "f16"), .bindings = std::move(bindings), .tolerance = 2e-3};
}

CudaCase bfloat(const std::string& name, const std::string& region) {
  return {.name = name, .region = retyped(region, "bf16"), .tolerance = 1e-2};
}

CudaCase tf32(const std::string& name, const std::string& region, Bindings bindings) {
  return {.name = name, .region = retyped(region, "tf32"), .bindings = std::move(bindings), .tolerance = 2e-3};
}

}  // namespace opfuse::test
