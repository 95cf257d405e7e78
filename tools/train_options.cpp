// SPDX-License-Identifier: Apache-2.0
// The options, their checks and their help text, on CLI11.
#include "train_options.hpp"

#include "options.hpp"

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
    "on the same data, and ends with the same bits as if it had never stopped. Where DIR holds a model only, or with "
    "--restart, "
    "a new\n"
    "training starts from its weights.\n\n"
    "Exit codes: 0 done; 1 a file, the data or this machine; 2 the command line; 3 the training diverged (infinities or "
    "NaNs);\n"
    "130 interrupted by Ctrl-C or SIGTERM (a second one ends the program at once).";

void add_options(CLI::App& app, TrainCommand& c, std::string& input, bool& eager) {
  app.add_option("--data", c.data, "Folder with the images and labels")->type_name("DIR")->check(named());
  app.add_option("--epochs", c.epochs, "Passes over the training images (20)")->type_name("N")->check(whole(1, 1000000));
  app.add_option("--batch", c.batch, "Images in a step (64)")->type_name("N")->check(whole(1, 65536));
  app.add_option("--recipe", c.recipe, "default: cosine schedule, weight decay, random shifts; seed: constant rate (default)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"default", "seed"}));
  app.add_option("--seed", c.seed, "For the initial weights, the order of images and their shifts (1)")
      ->type_name("N")
      ->check(whole(0, UINT64_MAX));
  app.add_option("--limit", c.limit, "Train on the first N images only")->type_name("N")->check(whole(1, 1 << 30));
  app.add_option("--threads", c.threads, "Threads to compute with, this one included (1)")
      ->type_name("N")
      ->check(whole(1, 256));
  add_isa_option(app, c.isa);
  app.add_option("--input", input, "When batches are gathered: plain, buffered, or prefetch by a thread of its own (buffered)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"plain", "buffered", "prefetch"}));
  app.add_flag("--eager", eager, "Record and run each step anew instead of replaying a captured one (slower, same result)");
  app.add_option("--save", c.save, "Save the model and the training's state here, after every epoch and on Ctrl-C")
      ->type_name("DIR")
      ->check(named());
  app.add_option("--load", c.load, "Start from what was saved here")->type_name("DIR")->check(named());
  app.add_flag("--restart", c.restart, "Start a new training from the weights of --load")->needs("--load");
  CLI::Option* const eval = app.add_flag("--eval", c.eval, "Only evaluate the model of --load on the test images");
  eval->needs("--load");
  for (const char* training :
       {"--save", "--epochs", "--batch", "--recipe", "--seed", "--limit", "--restart", "--input", "--eager"}) {
    eval->excludes(app.get_option(training));
  }
  app.add_option("--report", c.report, "Write figures and configuration to this file as JSON")
      ->type_name("FILE")
      ->check(named());
  app.add_flag("--quiet", c.quiet, "Print the test accuracy only");
}

}  // namespace

Parsed parse_command_line(int argc, char** argv) {
  Parsed parsed;
  CLI::App app(kDescription, "lenet_train");
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("lenet_train ") + VITRO_VERSION);
  app.get_formatter()->column_width(28);
  std::string input = "buffered";
  bool eager = false;
  add_options(app, parsed.command, input, eager);
  parsed.exit_code = parse_or_end(app, argc, argv, kUsage);
  const std::map<std::string, InputPolicy> policies = {
      {"plain", InputPolicy::plain}, {"buffered", InputPolicy::buffered}, {"prefetch", InputPolicy::prefetch}};
  if (const auto found = policies.find(input); found != policies.end()) parsed.command.execution.input = found->second;
  parsed.command.execution.captured = !eager;
  return parsed;
}

}  // namespace vitro::tools
