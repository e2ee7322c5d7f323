// Constants that a file has as what they are made of. Filters of codes that Winograd's algorithm computes with are four
// to eight times as large as the codes, codes in pairs a tenth larger; loading makes these as compiling did, in whole
// numbers, to the same bits.
//
//   in memory   | plain | made     | plain |         in the file   | plain | source | plain |
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "runtime/artifact.hpp"

namespace opfuse {

/// Whether a file may have the source of a constant that lies so.
bool is_prepared(const Layout& layout);

/// None, where a file with their sources is hardly smaller than the constants in memory: it is mapped as it is then.
void keep_worthwhile(std::vector<PreparedConstant>& prepared, size_t memory);

/// The constants as a file has them; they must not be asked for where nothing is prepared.
std::vector<uint8_t> stored_constants(const Artifact& artifact);
size_t stored_constant_bytes(const Artifact& artifact);

nlohmann::json prepared_json(const std::vector<PreparedConstant>& prepared);
/// Sources lie in `stored`, which `owner` keeps. E::bad_file.
std::vector<PreparedConstant> prepared_of(const nlohmann::json& list, std::span<const uint8_t> stored,
                                          const std::shared_ptr<const void>& owner);

/// Makes the constants of an artifact from what its file has; they and `owner` are the artifact's then.
void prepare_constants(Artifact& artifact, std::span<const uint8_t> stored, std::shared_ptr<const void> owner);

}  // namespace opfuse
