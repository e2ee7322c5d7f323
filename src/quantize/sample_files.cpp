// One file is in memory at a time. All are opened once at the start, to count samples and to refuse what does not fit
// before any work is done.
#include "quantize/sample_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "base/hash.hpp"
#include "interp/random_inputs.hpp"
#include "onnx/tensor_files.hpp"
#include "quantize/file_mark.hpp"
#include "quantize/picture_samples.hpp"

namespace opfuse::quantization {
namespace {

namespace fs = std::filesystem;

bool is_array_file(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return extension == ".npy" || extension == ".npz";
}

struct Found {
  std::vector<std::string> arrays, pictures;
};

/// Files of a folder by name; hidden ones are not looked at.
Found files_of(const std::string& path, std::vector<std::string>* notes) {
  std::error_code error;
  if (!fs::exists(path, error)) throw fail(E::file_not_found, "there is no \"{}\"", path).file(path);
  if (!fs::is_directory(path, error)) {
    if (is_array_file(path)) return {{path}, {}};
    if (is_picture(path)) return {{}, {path}};
    throw fail(E::bad_file, "\"{}\" does not hold samples", path)
        .file(path)
        .hint("give a folder, an .npz, an .npy, a .jpg or a .png");
  }
  Found found;
  size_t others = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    const std::string file = entry.path().string();
    if (entry.path().filename().string().starts_with(".") || entry.is_directory()) continue;
    if (!entry.is_regular_file())  // a link to nothing, a pipe
      ++others;
    else if (is_array_file(entry.path()))
      found.arrays.push_back(file);
    else if (is_picture(file))
      found.pictures.push_back(file);
    else
      ++others;
  }
  std::sort(found.arrays.begin(), found.arrays.end());
  std::sort(found.pictures.begin(), found.pictures.end());
  if (found.arrays.empty() && found.pictures.empty())
    throw fail(E::bad_file, "\"{}\" holds no .npy, .npz, .jpg or .png", path)
        .file(path)
        .hint("other formats: save what the model reads as .npy (docs/quantization.md)");
  if (!found.arrays.empty() && !found.pictures.empty())
    throw fail(E::bad_file, "\"{}\" holds arrays (\"{}\") and pictures (\"{}\")", path, found.arrays[0],
               found.pictures[0])
        .file(path)
        .hint("which of them are samples is not known; keep them in two folders");
  if (notes && others > 0)
    notes->push_back(fmt::format("{} other file{} of \"{}\" passed over", others, others == 1 ? "" : "s", path));
  return found;
}

/// Wider types without loss; nothing when that is not possible.
std::optional<Tensor> widened(const Tensor& given, DType to) {
  if (given.dtype() == to) return given;
  const auto real = [](DType t) { return t == DType::f16 || t == DType::f32 || t == DType::f64; };
  const bool floats = (real(to) || to == DType::bf16) && real(given.dtype());
  const bool integers = to == DType::i64 && is_integer(given.dtype()) && byte_size(given.dtype()) < 8;
  if (!floats && !integers) return std::nullopt;
  return given.cast(to);
}

/// As numpy calls it: "float32", "int64", "bool"; it has no bf16, which floats are rounded to here.
std::string numpy_name(DType dtype) {
  const std::string own(name_of(dtype));  // "f32"
  if (dtype == DType::boolean) return "bool";
  if (dtype == DType::bf16) return "float32";
  return std::string(own[0] == 'f' ? "float" : own[0] == 'u' ? "uint" : "int") + own.substr(1);
}

/// The samples that one array holds of one input.
struct Cut {
  Tensor array;
  int64_t count = 1;
  std::vector<int64_t> sizes;  ///< of a sample

  Tensor at(int64_t i) const {
    if (count == 1) return array.reshaped(sizes);
    const size_t bytes = array.bytes() / static_cast<size_t>(count);
    Tensor part(array.dtype(), sizes);
    if (bytes > 0)
      std::memcpy(part.mutable_data(), static_cast<const char*>(array.data()) + static_cast<size_t>(i) * bytes, bytes);
    return part;
  }
};

class Files {
 public:
  Files(std::vector<std::string> paths, const Graph& interface, const SampleFileOptions& options)
      : paths_(std::move(paths)), options_(options) {
    for (const Value* input : interface.inputs()) inputs_.emplace_back(input->name, input->type);
    for (size_t f = 0; f < paths_.size(); ++f) {
      load(f);
      for (int64_t i = 0; i < loaded_count_; ++i) samples_.push_back({f, i});
    }
    spread();
  }

  size_t count() const { return samples_.size(); }

  std::string name(size_t index) const {
    const Place& place = samples_[std::min(index, samples_.size() - 1)];
    return fmt::format("\"{}\"{}", paths_[place.file], place.index > 0 ? fmt::format(", sample {}", place.index) : "");
  }

  std::optional<std::vector<Tensor>> read(size_t index) {
    if (index >= samples_.size()) return std::nullopt;
    const Place& place = samples_[index];
    load(place.file);
    std::vector<Tensor> sample;
    for (const Cut& cut : loaded_) sample.push_back(cut.at(cut.count == 1 ? 0 : place.index));
    return sample;
  }

  std::string identity() const {
    std::string text = fmt::format("{} of", samples_.size());
    for (const std::string& path : paths_) text += " " + file_mark(path);
    return hash_text(text).hex();
  }

 private:
  struct Place {
    size_t file;
    int64_t index;
  };

  void spread() {
    if (options_.most == 0 || options_.most >= samples_.size()) return;
    std::vector<Place> kept;
    for (size_t i = 0; i < options_.most; ++i) kept.push_back(samples_[i * samples_.size() / options_.most]);
    samples_ = std::move(kept);
  }

  void load(size_t file) {
    if (file == loaded_file_) return;
    const std::string& path = paths_[file];
    const std::vector<NamedTensor> arrays = read_tensor_file(path);
    loaded_.clear();
    loaded_count_ = 1;
    for (size_t i = 0; i < inputs_.size(); ++i) loaded_.push_back(cut(array_for(i, arrays, path), i, path));
    for (size_t i = 0; i < loaded_.size(); ++i) {
      const int64_t count = loaded_[i].count;
      if (count == 1 || count == loaded_count_) continue;
      if (loaded_count_ != 1)
        throw fail(E::bad_binding, "\"{}\" holds {} samples of '{}' and {} of others", path, count, inputs_[i].first,
                   loaded_count_)
            .file(path);
      loaded_count_ = count;
    }
    loaded_file_ = file;
  }

  const Tensor& array_for(size_t input, const std::vector<NamedTensor>& arrays, const std::string& path) const {
    const std::string& name = inputs_[input].first;
    std::vector<std::string> names;
    for (const auto& [given, tensor] : arrays) {
      if (given == name) return tensor;
      names.push_back(given);
    }
    if (inputs_.size() == 1 && arrays.size() == 1) return arrays.front().second;
    for (const auto& [given, tensor] : arrays)
      if (arrays.size() == inputs_.size() && given == fmt::format("arr_{}", input)) return tensor;
    throw fail(E::bad_binding, "\"{}\" has no array for the input '{}'", path, name)
        .file(path)
        .hint(names.size() == 1 && names[0].empty()
                  ? "a model of several inputs needs .npz files, whose arrays have the inputs' names"
                  : fmt::format("it has: {}", fmt::join(names, ", ")));
  }

  int64_t batch(const Dim& dim) const {
    if (dim.is_constant()) return dim.value();
    const auto at = dim.op() == DimOp::symbol ? options_.dims.find(dim.symbol_name()) : options_.dims.end();
    return at == options_.dims.end() ? 1 : at->second;
  }

  Cut cut(const Tensor& given, size_t input, const std::string& path) const {
    const auto& [name, type] = inputs_[input];
    const auto misfit = [&](const std::string& why) {
      return fail(E::bad_binding, "\"{}\" holds {} for '{}', which is {}: {}", path, given.type().text(), name,
                  type.text(), why)
          .file(path);
    };
    const auto array = widened(given, type.dtype);
    if (!array)
      throw misfit("another element type")
          .hint(fmt::format("store what the model reads, e.g. x.astype(\"{}\") after normalising",
                            numpy_name(type.dtype)));
    const size_t rank = type.shape.rank();
    Cut cut{*array, 1, array->sizes()};
    if (array->rank() == rank && rank == 0) return cut;
    if (array->rank() == rank) {
      const int64_t each = batch(type.shape[0]);
      if (each <= 0 || array->dim(0) % each != 0)
        throw misfit(fmt::format("its first axis is not a multiple of the batch {}", each));
      cut.count = array->dim(0) / each;
      cut.sizes[0] = each;
    } else if (array->rank() == rank + 1) {
      cut.count = array->dim(0);
      cut.sizes.erase(cut.sizes.begin());
    } else if (array->rank() + 1 == rank && batch(type.shape[0]) == 1) {
      cut.sizes.insert(cut.sizes.begin(), 1);
    } else {
      throw misfit("another number of dimensions");
    }
    for (size_t d = 0; d < rank; ++d)
      if (type.shape[d].is_constant() && type.shape[d].value() != cut.sizes[d])
        throw misfit(fmt::format("dimension {} of a sample is {}", d, cut.sizes[d]));
    return cut;
  }

  std::vector<std::string> paths_;
  SampleFileOptions options_;
  std::vector<std::pair<std::string, TensorType>> inputs_;
  std::vector<Place> samples_;
  size_t loaded_file_ = SIZE_MAX;
  int64_t loaded_count_ = 1;
  std::vector<Cut> loaded_;
};

}  // namespace

Samples samples_from_files(const std::string& path, const Graph& interface, const SampleFileOptions& options,
                           std::vector<std::string>* notes) {
  Found found = files_of(path, notes);
  if (!found.pictures.empty()) return samples_from_pictures(std::move(found.pictures), interface, options);
  if (notes && options.pictures != PictureOptions{})
    notes->push_back(
        fmt::format("\"{}\" holds arrays, which are read as they are: what is said of pictures has no effect", path));
  const auto files = std::make_shared<Files>(std::move(found.arrays), interface, options);
  if (files->count() == 0) throw fail(E::bad_file, "\"{}\" holds no sample", path).file(path);
  return {.read = [files](size_t index) { return files->read(index); },
          .name = [files](size_t index) { return files->name(index); },
          .count = files->count(),
          .identity = files->identity()};
}

Samples random_samples(const Graph& interface, size_t count, uint64_t seed, const SymbolValues& dims) {
  const auto graph = std::make_shared<const Graph>(interface.clone());
  return {.read = [=](size_t index) -> std::optional<std::vector<Tensor>> {
            if (index >= count) return std::nullopt;
            return random_inputs(*graph, {.seed = seed + index, .symbols = dims});
          },
          .name = [](size_t index) { return fmt::format("random sample {}", index); },
          .count = count,
          .identity = fmt::format("{} random, seed {}", count, seed)};
}

}  // namespace opfuse::quantization
