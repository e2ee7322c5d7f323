// Files that a verb writes: what is refused before any work is done.
#pragma once

#include <string>
#include <vector>

#include "flag_set.hpp"

namespace opfuse::cli {

/// "--force": write what the file's name contradicts.
void add_force_flag(FlagSet& app, bool& force);

/// E::file_write_failed when no file can be made at `path`. E::bad_option when it is a file that was read or that
/// another flag names, or when its suffix names another kind of file than those in `suffixes` (".opf") or, where there
/// are several to choose from, none of them, and `force` is not set. An empty path is not an output.
/// `has_force`: the verb has --force for this file, so the hint may name it.
void check_output(const std::string& flag, const std::string& path, const std::vector<std::string>& suffixes,
                  bool force, bool has_force = true);
/// The same for files whose kind is free: only inputs are spared.
void check_output(const std::string& flag, const std::string& path);

/// A flag that says nothing without another one.
struct Companion {
  const char* flag;
  const char* needs;  ///< a flag
};
/// E::bad_option for the first flag that is given without what it needs.
void check_companions(const FlagSet& app, const std::vector<Companion>& companions);

/// E::bad_option for the first of `flags` that is given; `why` ends the sentence "--target does not apply: ...".
void refuse_flags(const FlagSet& app, const std::vector<std::string>& flags, const std::string& why,
                  const std::string& hint);

}  // namespace opfuse::cli
