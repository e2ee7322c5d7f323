// ONNX Runtime on the same file and the same input, when a Python with its wheel is there.
#pragma once

#include <optional>
#include <string>

#include "tensor/tensor.hpp"

namespace opfuse::cli {

struct PeerRun {
  std::string version;
  double median_ms = 0, min_ms = 0;
  Tensor output;  ///< the first one
};

/// A Python that can import onnxruntime and numpy: $OPFUSE_PEERS_VENV, build/peers-venv, python3. "" when there is
/// none.
std::string find_peer_python();

/// Runs `model` for about `seconds`; nullopt when the peer fails, with its last line in `problem`.
std::optional<PeerRun> run_onnxruntime(const std::string& python, const std::string& model, const Tensor& input,
                                       int threads, double seconds, std::string& problem);

extern const char* const kInstallPeer;  ///< the line that installs it

}  // namespace opfuse::cli
