// {"schema": "opfuse.scales/3", "model", "samples_are", "samples", "done",
//  "tensors": [{"tensor", "axis", "samples", "elements", "low", "high", "mean_low", "mean_high", "zeros",
//  "per_channel",
//               "channel_sums", "channel_squares", "channel_low", "channel_high", "exponent", "first", "counts"}]}
#include "quantize/scales_file.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/fail.hpp"
#include "base/json_fields.hpp"

namespace opfuse::quantization {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kSchema = "opfuse.scales/3";

Json json_of(const TensorStatistics& s) {
  return {{"tensor", s.tensor},
          {"axis", s.axis},
          {"samples", s.samples},
          {"elements", s.elements},
          {"low", s.low},
          {"high", s.high},
          {"mean_low", s.mean_low},
          {"mean_high", s.mean_high},
          {"zeros", s.zeros},
          {"per_channel", s.per_channel},
          {"channel_sums", s.channel_sums},
          {"channel_squares", s.channel_squares},
          {"channel_low", s.channel_low},
          {"channel_high", s.channel_high},
          {"exponent", s.histogram.exponent},
          {"first", s.histogram.first},
          {"counts", s.histogram.counts}};
}

TensorStatistics statistics_of(const Json& j) {
  TensorStatistics s;
  j.at("tensor").get_to(s.tensor);
  s.axis = whole<int>(j.at("axis"));
  s.samples = whole<int64_t>(j.at("samples"));
  s.elements = whole<int64_t>(j.at("elements"));
  j.at("low").get_to(s.low);
  j.at("high").get_to(s.high);
  j.at("mean_low").get_to(s.mean_low);
  j.at("mean_high").get_to(s.mean_high);
  s.zeros = whole<int64_t>(j.at("zeros"));
  s.per_channel = whole<int64_t>(j.at("per_channel"));
  j.at("channel_sums").get_to(s.channel_sums);
  j.at("channel_squares").get_to(s.channel_squares);
  j.at("channel_low").get_to(s.channel_low);
  j.at("channel_high").get_to(s.channel_high);
  s.histogram.exponent = whole<int>(j.at("exponent"));
  s.histogram.first = whole<int64_t>(j.at("first"));
  s.histogram.counts = wholes<int64_t>(j.at("counts"));
  const size_t channels = s.channel_sums.size();
  if (s.channel_squares.size() != channels || s.channel_low.size() != channels || s.channel_high.size() != channels)
    throw fail(E::bad_file, "its channels of '{}' contradict themselves", s.tensor);
  Histogram empty;
  if (!s.histogram.empty()) empty.cover(s.low, s.high);
  const bool bins = s.histogram.empty() || (s.histogram.counts.size() == kBins &&
                                            s.histogram.exponent == empty.exponent && s.histogram.first == empty.first);
  const bool good = bins && s.low <= s.high && s.samples >= 0 && s.elements >= 0;
  if (!good) throw fail(E::bad_file, "its statistics of '{}' contradict themselves", s.tensor);
  return s;
}

Calibration read_scales(const std::string& path) try {
  std::ifstream file(path, std::ios::binary);  // no input: this run writes it again
  const Json j = Json::parse(file);
  if (j.at("schema") != kSchema) throw fail(E::bad_file, "its schema is {}, not {}", j.at("schema").dump(), kSchema);
  Calibration c;
  j.at("model").get_to(c.model);
  j.at("samples_are").get_to(c.identity);
  c.samples = whole<size_t>(j.at("samples"));
  j.at("done").get_to(c.done);
  for (const Json& t : j.at("tensors")) c.tensors.push_back(statistics_of(t));
  return c;
} catch (const Json::exception& e) {
  throw fail(E::bad_file, "{}", e.what());
}

void check_fits(const Calibration& file, const Calibration& wanted) {
  if (file.model != wanted.model) throw fail(E::bad_file, "it was made for another model");
  if (!wanted.identity.empty() && file.identity != wanted.identity)
    throw fail(E::bad_file, "it was made with other samples ({}, these are {})", file.identity, wanted.identity);
  bool same = file.tensors.size() == wanted.tensors.size();
  for (size_t i = 0; same && i < file.tensors.size(); ++i)
    same = file.tensors[i].tensor == wanted.tensors[i].tensor && file.tensors[i].axis >= wanted.tensors[i].axis;
  if (!same) throw fail(E::bad_file, "it has other tensors, or lacks the means that --bias-correction needs");
}

}  // namespace

void write_scales(const std::string& path, const Calibration& c) {
  Json j{
      {"schema", kSchema}, {"model", c.model}, {"samples_are", c.identity}, {"samples", c.samples}, {"done", c.done}};
  j["tensors"] = Json::array();
  for (const TensorStatistics& s : c.tensors) j["tensors"].push_back(json_of(s));
  AtomicFile file(path);
  file.write(j.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  file.commit();
}

void take_up(const std::string& path, Calibration& calibration) {
  if (!std::filesystem::exists(path)) return;
  try {
    Calibration file = read_scales(path);
    check_fits(file, calibration);
    if (!calibration.identity.empty()) file.identity = calibration.identity;
    calibration = std::move(file);
  } catch (const Error& error) {
    throw fail(E::bad_file, "\"{}\" cannot be taken up: {}", path, error.diagnostic().message)
        .file(path)
        .hint("remove it to calibrate anew");
  }
}

}  // namespace opfuse::quantization
