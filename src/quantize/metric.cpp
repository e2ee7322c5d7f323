// A user's command sees files alone: the outputs of one model in a folder, in the order of the samples.
#include "quantize/metric.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/fail.hpp"
#include "base/temporary_folder.hpp"
#include "onnx/tensor_files.hpp"
#include "quantize/observed_model.hpp"

namespace opfuse::quantization {
namespace {

using TakeOutputs = std::function<void(size_t sample, const ObservedModel& model)>;

void run_all(const Graph& graph, const Samples& samples, const RunOptions& options, const TakeOutputs& take) {
  ObservedModel model(graph, {}, options);
  for (size_t index = 0; const auto sample = samples.read(index); ++index) {
    model.run(*sample);
    take(index, model);
    if (options.progress) options.progress("outputs for the metric", index + 1, samples.count);
  }
}

void write_outputs(const Graph& graph, const Samples& samples, const RunOptions& options,
                   const TemporaryFolder& folder) {
  run_all(graph, samples, options, [&](size_t index, const ObservedModel& model) {
    std::vector<NamedTensor> arrays;
    for (const std::string& name : model.outputs()) {
      const ArrayView value = model.value(name);
      arrays.emplace_back(name, Tensor::wrap(value.dtype, value.shape, value.data, nullptr));
    }
    write_npz(folder.path(fmt::format("{:06}.npz", samples.number_of(index))), arrays);
  });
}

double mean_score(const MetricChoice& choice, const Graph& graph, const Samples& samples, const RunOptions& options) {
  double sum = 0, count = 0;
  run_all(graph, samples, options, [&](size_t index, const ObservedModel& model) {
    std::map<std::string, ArrayView> outputs;
    for (const std::string& name : model.outputs()) outputs[name] = model.value(name);
    const double score = choice.score(samples.number_of(index), outputs);
    if (!std::isfinite(score)) throw fail(E::bad_option, "the score of {} is {}", samples.name_of(index), score);
    sum += score, ++count;
  });
  return sum / count;
}

/// In single quotes of a shell.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

/// "exits with 3", "is ended by signal 9 (Killed)".
std::string how_it_ended(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("is ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exits with {}", WEXITSTATUS(status));
}

/// What a command may print before the line that counts; of more only the end is kept.
constexpr size_t kMostKept = 1 << 16;

double number_of(const std::string& command, const TemporaryFolder& folder) {
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen((command + " " + quoted(folder.path(""))).c_str(), "r"), pclose);
  if (!pipe) throw fail(E::bad_option, "the metric \"{}\" cannot be started", command);
  std::string printed;
  std::array<char, 4096> block;
  while (const size_t got = fread(block.data(), 1, block.size(), pipe.get())) {
    printed.append(block.data(), got);
    if (printed.size() > 2 * kMostKept) printed.erase(0, printed.size() - kMostKept);
  }
  const int status = pclose(pipe.release());
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw fail(E::bad_option, "the metric \"{}\" {}", command, how_it_ended(status))
        .hint("it is called with a folder of .npz files, one for each sample; sqnr, cosine and top1 need no command");
  while (!printed.empty() && (printed.back() == '\n' || printed.back() == ' ')) printed.pop_back();
  const std::string_view last = std::string_view(printed).substr(printed.rfind('\n') + 1);
  double number = 0;
  const auto [end, error] = std::from_chars(last.data(), last.data() + last.size(), number);
  if (last.empty() || error != std::errc{} || end != last.data() + last.size() || !std::isfinite(number))
    throw fail(E::bad_option, "the last line of the metric \"{}\" is not a number: \"{}\"", command,
               last.substr(0, 80));
  return number;
}

}  // namespace

Metric measure_metric(const MetricChoice& choice, const Graph& reference, const Graph& quantised,
                      const Samples& samples, const Agreement& agreement, const RunOptions& options,
                      std::optional<double> of_float) {
  const std::string& name = choice.name;
  const OutputAgreement& first = agreement.outputs.front();
  if (!choice.score && name == "sqnr") return {name, kMostSqnr, first.noise.sqnr()};
  if (!choice.score && name == "cosine") return {name, 1, first.cosine};
  if (!choice.score && name == "top1") {
    if (first.rows == 0) throw fail(E::bad_option, "'{}' has no rows to take a top-1 of", first.output);
    return {name, 1, static_cast<double>(first.same_top) / static_cast<double>(first.rows)};
  }
  Metric metric{choice.title(), of_float.value_or(0), 0};
  for (const auto& [graph, number] :
       {std::pair{&reference, &metric.of_float}, std::pair{&quantised, &metric.of_codes}}) {
    if (graph == &reference && of_float) continue;
    if (choice.score) {
      *number = mean_score(choice, *graph, samples, options);
      continue;
    }
    const TemporaryFolder folder;
    write_outputs(*graph, samples, options, folder);
    if (options.progress) options.progress("the metric's command", 0, 1);
    *number = number_of(name, folder);
  }
  return metric;
}

}  // namespace opfuse::quantization
