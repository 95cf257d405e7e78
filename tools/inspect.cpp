// SPDX-License-Identifier: Apache-2.0
// inspect: a saved model's layers, the steps that capture makes of it, and the memory that they take.
#include "../core/file.hpp"
#include "../models/session.hpp"
#include "../models/train_step.hpp"
#include "arena_map.hpp"
#include "inspect_options.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>

namespace vitro::tools {
namespace {

// One run of the program, from the command line to what is printed.
class Inspection {
 public:
  explicit Inspection(const InspectCommand& command)
      : command_(command), model_(Model::load(command.folder)), context_({command.isa, command.threads}) {}

  void execute() {
    capture();
    print_layers();
    std::printf("\n%s, batch %td\n%s", command_.train ? "Training step" : "Inference", command_.batch,
                plan_->describe().c_str());
    if (command_.arena_text) std::printf("\n%s", arena_text(*plan_).c_str());
    write("--graphviz", command_.graphviz, plan_->graphviz());
    write("--arena-svg", command_.arena_svg, arena_svg(*plan_));
    if (compiled_) print_constants();
  }

 private:
  CaptureOptions capture_options() const { return {.fuse = command_.fuse, .reuse_memory = command_.reuse_memory}; }

  void capture() {
    if (command_.train) return capture_training();
    const CompiledModel::Options options{
        .batch = command_.batch, .context = {command_.isa, command_.threads}, .capture = capture_options()};
    compiled_ = CompiledModel::try_make(model_, options).value();
    plan_ = std::shared_ptr<const Plan>(compiled_, &compiled_->plan());
  }

  // The step that lenet_train runs: its recipes do not clip.
  void capture_training() {
    Tape tape(context_, TapeMode::record);
    velocity_ = model_.parameters();
    const StepInputs inputs{.pixels = tape.placeholder(model_.try_batch_shape(command_.batch).value(), DType::u8),
                            .labels = tape.placeholder({command_.batch}, DType::i32),
                            .hyper = tape.placeholder({3}),
                            .max_norm = {},
                            .previous_ok = tape.placeholder(Shape(), DType::i32)};
    const StepResults r = record_train_step(tape, model_, velocity_, inputs);
    const Var outputs[] = {r.loss, r.correct, r.squared_norm, r.ok};
    plan_ = Plan::try_capture(tape, outputs, capture_options()).value();
  }

  void print_layers() const {
    Context scalar({.isa = Isa::scalar});
    Tape tape(scalar, TapeMode::record);
    const Var x = tape.placeholder(model_.try_batch_shape(command_.batch).value());
    const std::vector<Var> outputs = model_.forward_layers(x, model_.place_constants(tape));
    std::size_t width = 5;
    for (const Layer& layer : model_.layers()) width = std::max(width, layer.name.size());
    const int columns = static_cast<int>(width);
    std::printf("%s: %td parameters, input %s, weights sha256 %s\n\n%-*s  %-14s  %-18s  %10s  inputs\n", model_.name().c_str(),
                model_.parameter_count(), to_string(x.shape()).c_str(), model_.weights_sha256().c_str(), columns, "layer",
                "type", "output", "parameters");
    for (std::size_t i = 0; i < model_.layers().size(); ++i) {
      const Layer& layer = model_.layers()[i];
      std::string inputs;
      for (const std::string& name : layer.inputs) inputs += (inputs.empty() ? "" : ", ") + name;
      std::printf("%-*s  %-14s  %-18s  %10td  %s\n", columns, layer.name.c_str(), type_name(layer.kind),
                  to_string(outputs[i].shape()).c_str(), parameters_of(layer), inputs.empty() ? "-" : inputs.c_str());
    }
  }

  Index parameters_of(const Layer& layer) const {
    Index count = 0;
    for (const Parameter& p : model_.parameters()) {
      const bool own = p.name == layer.name + ".weight" || p.name == layer.name + ".bias";
      count += own ? p.value.elements() : 0;
    }
    return count;
  }

  // For a program whose sessions get static memory.
  void print_constants() const {
    std::printf(
        "\nFor a build:\n"
        "// %s, weights sha256 %s\n// batch %td, %s kernels, %d thread(s)%s%s\n"
        "constexpr std::size_t kSessionBytes = %zu;  // aligned to 64\n"
        "constexpr std::size_t kInputFloats = %td;\nconstexpr std::size_t kOutputFloats = %td;\n",
        model_.name().c_str(), model_.weights_sha256().c_str(), command_.batch, context_.kernels().name, context_.threads(),
        command_.fuse ? "" : ", not fused", command_.reuse_memory ? "" : ", memory not reused", compiled_->session_bytes(),
        compiled_->input_shape().elements(), compiled_->output_shape().elements());
  }

  static void write(const char* option, const std::string& path, const std::string& text) {
    if (path.empty()) return;
    const Status status = write_file(path, std::as_bytes(std::span(text.data(), text.size())));
    if (!status) fail(status.error().code(), std::string(option) + ": " + status.error().message());
  }

  const InspectCommand& command_;
  Model model_;
  Context context_;
  std::vector<Parameter> velocity_;
  std::shared_ptr<const CompiledModel> compiled_;  // of an inference
  std::shared_ptr<const Plan> plan_;
};

int run(int argc, char** argv) {
  const ParsedInspect parsed = parse_inspect_options(argc, argv);
  if (parsed.exit_code) return *parsed.exit_code;
  try {
    Inspection(parsed.command).execute();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "inspect: %s\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace vitro::tools

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  const int code = vitro::tools::run(argc, argv);
  if (code != 0 || (std::fflush(stdout) == 0 && std::ferror(stdout) == 0)) return code;
  std::fputs("inspect: not everything could be written to standard output\n", stderr);
  return 1;
}
