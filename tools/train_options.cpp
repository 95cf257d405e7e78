// SPDX-License-Identifier: Apache-2.0
// The options, their checks and their help text, on CLI11.
#include "train_options.hpp"

#include <CLI/CLI.hpp>
#include <map>

namespace vitro::tools {
namespace {

constexpr const char* kDescription =
    "Trains LeNet-5 on images in MNIST's idx format and reports how well it does on the test images.\n"
    "The result is the same to the last bit for every --isa and --threads.";

constexpr const char* kFooter =
    "Data: a folder with train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and\n"
    "t10k-labels-idx1-ubyte, each plain or .gz. Without --data: $VITRO_MNIST_DIR, else data/mnist, else the small sample in\n"
    "data/sample. tools/fetch_mnist.sh data/mnist downloads MNIST.\n\n"
    "--load DIR goes on where a training saved there stopped (also in the middle of an epoch), with its batch, recipe, seed "
    "and limit,\n"
    "and ends with the same bits as if it had never stopped. Where DIR holds a model only, a new training starts from its "
    "weights.\n\n"
    "Exit codes: 0 done; 1 a file, the data or this machine; 2 the command line; 3 the training diverged (infinities or "
    "NaNs);\n"
    "130 interrupted by Ctrl-C.";

}  // namespace

Parsed parse_command_line(int argc, char** argv) {
  Parsed parsed;
  TrainCommand& c = parsed.command;
  CLI::App app(kDescription, "lenet_train");
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("lenet_train ") + VITRO_VERSION);
  app.get_formatter()->column_width(28);

  const auto whole = [](Index low, Index high) { return CLI::Range(low, high); };
  app.add_option("--data", c.data, "Folder with the images and labels")->type_name("DIR");
  app.add_option("--epochs", c.epochs, "Passes over the training images (20)")->type_name("N")->check(whole(1, 1000000));
  app.add_option("--batch", c.batch, "Images in a step (64)")->type_name("N")->check(whole(1, 65536));
  app.add_option("--recipe", c.recipe, "default: cosine schedule, weight decay, random shifts; seed: constant rate (default)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"default", "seed"}));
  app.add_option("--seed", c.seed, "For the initial weights, the order of images and their shifts (1)")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);  // "-1" would be read as 2^64 - 1
  app.add_option("--limit", c.limit, "Train on the first N images only")->type_name("N")->check(whole(1, 1 << 30));
  app.add_option("--threads", c.threads, "Threads to compute with, this one included (1)")
      ->type_name("N")
      ->check(whole(1, 256));
  const std::map<std::string, int> isas = {{"auto", -1},
                                           {"scalar", static_cast<int>(Isa::scalar)},
                                           {"blocked", static_cast<int>(Isa::blocked)},
                                           {"avx2", static_cast<int>(Isa::avx2)},
                                           {"avx512", static_cast<int>(Isa::avx512)}};
  std::string isa = "auto";
  app.add_option("--isa", isa, "Kernels to use: auto, scalar, blocked, avx2, avx512 (auto)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"auto", "scalar", "blocked", "avx2", "avx512"}));
  app.add_option("--save", c.save, "Save the model and the training's state here, after every epoch and on Ctrl-C")
      ->type_name("DIR");
  app.add_option("--load", c.load, "Start from what was saved here")->type_name("DIR");
  app.add_flag("--eval", c.eval, "Only evaluate the model of --load on the test images")->needs("--load");
  app.add_option("--report", c.report, "Write figures and configuration to this file as JSON")->type_name("FILE");
  app.add_flag("--quiet", c.quiet, "Print the test accuracy only");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    parsed.exit_code = app.exit(error) == 0 ? kSuccess : kUsage;
    return parsed;
  }
  if (isas.at(isa) >= 0) c.isa = static_cast<Isa>(isas.at(isa));
  return parsed;
}

}  // namespace vitro::tools
