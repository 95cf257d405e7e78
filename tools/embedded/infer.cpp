// SPDX-License-Identifier: Apache-2.0
// An inference-only program for a small device: a model from its two files, one image from standard input, its scores. Built
// without exceptions, RTTI, threads and zlib by the preset `embedded`; --stack also prints how much stack each part has used.
#include "../../models/model_folder.hpp"
#include "../../models/session.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using namespace vitro;

[[noreturn]] void give_up(const Error& error) {
  std::fprintf(stderr, "infer: %s\n", error.what());
  std::exit(1);
}

std::vector<std::byte> read_all(std::FILE* file) {
  std::vector<std::byte> bytes;
  std::byte block[512];
  while (const std::size_t got = std::fread(block, 1, sizeof block, file)) bytes.insert(bytes.end(), block, block + got);
  return bytes;
}

std::vector<std::byte> read_file_or_exit(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) {
    std::fprintf(stderr, "infer: cannot open %s\n", path.c_str());
    std::exit(1);
  }
  std::vector<std::byte> bytes = read_all(file);
  std::fclose(file);
  return bytes;
}

// The stack below the caller's frame, filled with a pattern, so that later the part that was used can be told.
class StackMark {
 public:
  static constexpr std::size_t kBytes = 256 * 1024, kOwn = 512;  // kOwn: what the marking functions themselves may be using

  // Requires kBytes of stack to be left.
  [[gnu::noinline]] void paint() noexcept {
    top_ = static_cast<volatile unsigned char*>(__builtin_frame_address(0));
    for (std::size_t i = kOwn; i < kBytes; ++i) *(top_ - i) = kPattern;
  }
  // Bytes between the frame that called paint() and the deepest one that has been written since.
  [[gnu::noinline]] std::size_t used() const noexcept {
    std::size_t depth = kBytes - 1;
    while (depth > kOwn && *(top_ - depth) == kPattern) --depth;
    return depth;
  }

 private:
  static constexpr unsigned char kPattern = 0xa5;
  volatile unsigned char* top_ = nullptr;
};

[[gnu::noinline]] Model load(const std::string& folder) {
  const std::string path = join_path(folder, kModelFile);
  const std::vector<std::byte> text = read_file_or_exit(path);
  const Result<ModelDocument> document = read_model_json({reinterpret_cast<const char*>(text.data()), text.size()}, path);
  if (!document) give_up(document.error());
  const std::string weights = join_path(folder, document.value().files.weights.file);
  Result<Model> model = decode_model(document.value(), read_file_or_exit(weights), weights);
  if (!model) give_up(model.error());
  return std::move(model).value();
}

// All memory of the inference is taken here.
std::unique_ptr<Session> make_session(const Model& model) {
  Result<std::unique_ptr<Session>> session = Session::try_make(model);
  if (!session) give_up(session.error());
  return std::move(session).value();
}

[[gnu::noinline]] void infer(Session& session, const Tensor& image, Tensor& scores) noexcept {
  session.run(image.data(), scores.data());
}

}  // namespace

int main(int argc, char** argv) {
  const bool print_stack = argc == 3 && std::strcmp(argv[2], "--stack") == 0;
  if (argc != 2 && !print_stack) {
    std::fputs(
        "usage: infer FOLDER [--stack] < IMAGE\n"
        "FOLDER holds model.json and the weights file that it names; IMAGE is one byte per input element\n",
        stderr);
    return 2;
  }
  set_failure_handler(give_up);
  StackMark stack;

  stack.paint();
  const Model model = load(argv[1]);
  const std::size_t load_stack = stack.used();

  const std::unique_ptr<Session> session = make_session(model);
  Tensor image(session->compiled().input_shape()), scores(session->compiled().output_shape());
  const std::vector<std::byte> pixels = read_all(stdin);
  if (static_cast<Index>(pixels.size()) != image.elements()) {
    std::fprintf(stderr, "infer: the image has %zu bytes, the model takes %td\n", pixels.size(), image.elements());
    return 1;
  }
  for (std::size_t i = 0; i < pixels.size(); ++i) image.span()[i] = static_cast<float>(pixels[i]) / 255.0f;

  stack.paint();
  infer(*session, image, scores);
  const std::size_t infer_stack = stack.used();

  for (Index i = 0; i < scores.elements(); ++i) std::printf("%td %.9g\n", i, static_cast<double>(scores.data()[i]));
  if (print_stack) std::printf("stack: %zu bytes to load, %zu bytes to infer\n", load_stack, infer_stack);
  return 0;
}
