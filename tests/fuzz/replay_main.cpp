// SPDX-License-Identifier: Apache-2.0
// Stands in for libFuzzer where a fuzz target only replays: gives it each file of the folders (and each file) named as
// arguments. Options, which start with '-', are libFuzzer's and are ignored. Exit code 2 if there was nothing to replay.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::filesystem::path> inputs(const std::vector<std::string>& arguments) {
  std::vector<std::filesystem::path> files;
  for (const std::string& argument : arguments) {
    if (argument.starts_with('-')) continue;
    if (!std::filesystem::is_directory(argument)) {
      files.emplace_back(argument);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argument)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

int main(int argc, char* argv[]) {
  const std::vector<std::filesystem::path> files = inputs({argv + 1, argv + argc});
  for (const std::filesystem::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::string contents{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (!file) {
      std::fprintf(stderr, "cannot read %s\n", path.c_str());
      return 1;
    }
    // A block of exactly the input's size, so that a sanitizer sees the first byte read beyond it.
    const auto block = std::make_unique<std::uint8_t[]>(contents.size());
    std::ranges::copy(contents, block.get());
    std::printf("%s\n", path.filename().c_str());
    std::fflush(stdout);  // after a crash the last line names the input
    LLVMFuzzerTestOneInput(block.get(), contents.size());
  }
  std::printf("replayed %zu inputs\n", files.size());
  return files.empty() ? 2 : 0;
}
