// Sections of an .opf that are JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "runtime/artifact.hpp"

namespace opfuse {

nlohmann::json model_json(const Artifact& artifact);
void read_model(const nlohmann::json& model, Artifact& artifact);

nlohmann::json routine_json(const RoutineLaunch& routine);
nlohmann::json program_json(const ArtifactProgram& program);
void read_program(const nlohmann::json& header, ArtifactProgram& program);

nlohmann::json variants_json(const std::vector<ArtifactVariant>& variants);
std::vector<ArtifactVariant> variants_of(const nlohmann::json& list);

}  // namespace opfuse
