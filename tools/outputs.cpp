// SPDX-License-Identifier: Apache-2.0
// The trials of the folders, and of standard output.
#include "outputs.hpp"

#include "../core/file.hpp"
#include "../core/text.hpp"
#include "../models/model_file.hpp"

#include <cstdio>
#include <filesystem>

namespace vitro::tools {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_report(const std::string& report, const std::string& why) {
  fail(ErrorCode::io, "--report: cannot write " + vitro::quoted(report) + ": " + why);
}

bool same_folder(const fs::path& a, const fs::path& b) {
  std::error_code ignored;
  return fs::weakly_canonical(fs::absolute(a), ignored) == fs::weakly_canonical(fs::absolute(b), ignored);
}

void check_report(const TrainCommand& command) {
  const fs::path path(command.report);
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const std::string name = path.filename();
  std::error_code ignored;
  if (name == kModelFile || is_saved_file(name)) {
    for (const std::string& model : {command.save, command.load}) {
      if (model.empty() || !same_folder(folder, model)) continue;
      refuse_report(command.report, "that is a file of the model in " + vitro::quoted(model));
    }
  }
  if (!fs::is_directory(folder, ignored) || (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored))) {
    refuse_report(command.report, "it must name a file in a folder that exists");
  }
  if (const Status status = try_folder(folder); !status) refuse_report(command.report, status.error().message());
}

}  // namespace

void check_outputs(const TrainCommand& command) {
  if (!command.report.empty()) check_report(command);
  if (command.save.empty()) return;
  Status status = make_directories(command.save);
  if (status) status = try_folder(command.save);
  if (!status) fail(status.error().code(), "--save: " + status.error().message());
}

bool standard_output_is_whole() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

}  // namespace vitro::tools
