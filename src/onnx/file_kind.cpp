// Signatures at the beginning of a file, in the order of the table; then the walk over the top level of a protobuf
// message, which tells a model that was cut off (a download that broke) from bytes that never were one.
#include "onnx/file_kind.hpp"

#include <algorithm>
#include <cctype>

#include "base/fail.hpp"

namespace opfuse::onnx {
namespace {

struct Kind {
  size_t at;  ///< where the signature stands
  Bytes signature;
  const char *what, *hint;
};

constexpr const char* kExportTorch = "export the model: torch.onnx.export(model, inputs, \"model.onnx\")";
constexpr const char* kExportTensorFlow = "convert it: python -m tf2onnx.convert";

constexpr Kind kKinds[] = {
    {0, "version https://git-lfs.github.com/spec/", "a git-lfs pointer, not the model itself",
     "fetch it: git lfs pull"},
    {0, "<?xml", "XML, perhaps an OpenVINO IR", "give the .onnx that it was converted from"},
    {0, {"\x80\x02", 2}, "a Python pickle, as torch.save writes", kExportTorch},
    {0, {"\x80\x04", 2}, "a Python pickle", kExportTorch},
    {0, {"\x80\x05", 2}, "a Python pickle", kExportTorch},
    {0, "\x89HDF\r\n", "an HDF5 file, as Keras writes", kExportTensorFlow},
    {4, "TFL3", "a TensorFlow Lite model", "convert it: python -m tf2onnx.convert --tflite"},
    {4, "ORTM", "a model in ONNX Runtime's own format", "give the .onnx that it was converted from"},
    {0, "OPFUSE", "an .opf: machine code of opfuse",
     "name it NAME.opf and run it, or give the .onnx it was compiled from"},
    {0, "GGUF", "a GGUF file", "give the model as ONNX"},
    {8, "{\"", "a safetensors file, which has weights but no graph", kExportTorch},
    {0, "\x93NUMPY", "a NumPy array", "arrays are given with --input"},
    {0, {"\x1f\x8b", 2}, "compressed with gzip", "unpack it: gunzip"},
    {0, "7z\xbc\xaf", "a 7z archive", "unpack it"},
    {0, "Rar!", "a RAR archive", "unpack it"},
    {0,
     "\x7f"
     "ELF",
     "an ELF binary", "give the .onnx"},
};

constexpr size_t kTextBytes = 64;  ///< a model has a length or a number among its first bytes, below a blank

bool is_printed(char c) { return (c >= ' ' && c < '\x7f') || c == '\n' || c == '\r' || c == '\t'; }

bool starts_without_case(Bytes bytes, Bytes word) {
  return bytes.size() >= word.size() && std::equal(word.begin(), word.end(), bytes.begin(), [](char a, char b) {
           return a == std::tolower(static_cast<unsigned char>(b));
         });
}

Error is(const char* what, const char* hint) { return fail(E::malformed_model, "the file is {}", what).hint(hint); }

std::optional<Error> by_signature(Bytes bytes) {
  for (const Kind& kind : kKinds)
    if (bytes.size() > kind.at && bytes.substr(kind.at).starts_with(kind.signature)) return is(kind.what, kind.hint);
  if (bytes.starts_with("PK\x03\x04")) {
    const bool torch = bytes.substr(0, 512).find("/data.pkl") != Bytes::npos ||
                       bytes.substr(0, 512).find("/constants.pkl") != Bytes::npos ||
                       bytes.substr(0, 512).find("/version") != Bytes::npos;
    return torch ? is("a PyTorch archive (.pt), not ONNX", kExportTorch) : is("a zip archive", "unpack it");
  }
  const size_t text = bytes.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  const Bytes head = text == Bytes::npos ? Bytes() : bytes.substr(text, 64);
  for (const char* tag : {"<!doctype html", "<html", "<head", "<!--"})
    if (starts_without_case(head, tag))
      return is("an HTML page, not the model", "the link leads to a page about the file: download the file itself");
  if (head.starts_with("{")) return is("JSON text", "give the .onnx");
  const Bytes beginning = bytes.substr(0, kTextBytes);
  if (bytes.size() >= kTextBytes && std::all_of(beginning.begin(), beginning.end(), is_printed))
    return is("text, not a model", "give the .onnx, or a text graph that ends in .fir");
  if (!bytes.empty() && std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; }))
    return is("all zeros", "the download or copy did not finish: fetch it again");
  return std::nullopt;
}

/// Walks over fields of a protobuf message. `end` is where the last one should end.
struct Walk {
  Bytes bytes;
  uint64_t at = 0, end = 0;
  bool well_formed = true;

  /// False at the end of the bytes.
  bool number(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && at < bytes.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes[at++]);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return true;
    }
    well_formed = well_formed && at == bytes.size();  // else: more than ten bytes
    end = at + 1;
    return false;
  }

  void run() {
    uint64_t tag = 0, length = 0;
    while (well_formed && at < bytes.size()) {
      if (!number(tag)) return;
      well_formed = tag >> 3 != 0 && ((tag & 7) == 0 || (tag & 7) == 1 || (tag & 7) == 2 || (tag & 7) == 5);
      if ((tag & 7) == 0 && !number(length)) return;
      if ((tag & 7) == 2 && !number(length)) return;
      const uint64_t skipped = (tag & 7) == 2 ? length : (tag & 7) == 1 ? 8 : (tag & 7) == 5 ? 4 : 0;
      well_formed = well_formed && skipped < uint64_t{1} << 40;
      at += skipped;
    }
    end = at;
  }
};

std::optional<Error> cut_off(Bytes bytes) {
  Walk walk{bytes};
  walk.run();
  if (!walk.well_formed || walk.end <= bytes.size()) return std::nullopt;
  return fail(E::malformed_model, "the file is truncated: it has {} bytes and should have {} at least", bytes.size(),
              walk.end)
      .hint("the download or copy did not finish: fetch it again");
}

}  // namespace

std::optional<Error> other_kind_of_file(Bytes bytes) {
  if (auto kind = by_signature(bytes)) return kind;
  return cut_off(bytes);
}

}  // namespace opfuse::onnx
