// SPDX-License-Identifier: Apache-2.0
// lenet_train: trains LeNet-5 on MNIST idx files, saves it, goes on with it, evaluates it.
#include "../core/text.hpp"
#include "../models/lenet.hpp"
#include "interrupt.hpp"
#include "outputs.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "train_options.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

namespace vitro::tools {
namespace {

constexpr Index kQuickTest = 256;  // images to look at where a whole evaluation would take too long

struct DataChoice {
  std::string folder;
  bool is_sample = false;
};

DataChoice choose_data(const std::string& given) {
  if (!given.empty()) return {given};
  if (const char* folder = std::getenv("VITRO_MNIST_DIR"); folder != nullptr && *folder != '\0') return {folder};
  std::error_code ignored;
  if (std::filesystem::is_directory("data/mnist", ignored)) return {"data/mnist"};
  if (std::filesystem::is_directory("data/sample", ignored)) return {"data/sample", true};
  fail(ErrorCode::io,
       "no data: give --data DIR or set VITRO_MNIST_DIR; neither data/mnist nor data/sample is in this folder. "
       "tools/fetch_mnist.sh DIR downloads MNIST");
}

// One run of the program, from the command line to the exit code.
class Run {
 public:
  explicit Run(const TrainCommand& command) : command_(command), context_({command.isa, command.threads}) {}

  int execute() {
    const DataChoice choice = choose_data(command_.data);
    data_ = load_mnist(choice.folder);
    data_folder_ = choice.folder;
    if (choice.is_sample) {
      std::fputs(
          "lenet_train: NOTE: no MNIST found; using the small Fashion-MNIST sample in data/sample. Its accuracy says little.\n",
          stderr);
    }
    if (command_.eval) return evaluate_only();
    prepare();
    check_outputs(command_);
    if (!command_.quiet) print_setup();
    return train();
  }

 private:
  int evaluate_only() {
    const Model model = Model::load(command_.load);
    check_outputs(command_);
    const Evaluation test = evaluate(context_, model, data_.test);
    Report report = make_report(model);
    report.options = nullptr;
    report.train_images = 0;
    return finish(report, test);
  }

  // The model and the trainer: new, from weights, or from a training that was saved.
  void prepare() {
    if (command_.limit) limit_ = std::min(*command_.limit, data_.train.size());
    std::optional<Training> saved;
    if (!command_.load.empty()) {
      model_ = std::make_unique<Model>(Model::load(command_.load));
      if (!command_.restart) saved = load_training();
    }
    TrainOptions options;
    if (saved) {
      options = saved->options;
      check_against(*saved);
      limit_ = saved->samples;
    } else {
      options.batch = command_.batch.value_or(options.batch);
      options.seed = command_.seed.value_or(options.seed);
      options.recipe = try_recipe(command_.recipe.value_or("default")).value();
    }
    options.epochs = command_.epochs.value_or(options.epochs);
    if (!model_) model_ = std::make_unique<Model>(models::lenet5(options.seed));
    if (limit_ && *limit_ < data_.train.size()) data_.train = first_images(data_.train, *limit_);
    if (saved || !command_.save.empty()) data_xxh64_ = data_xxh64(data_.train);
    if (saved) check_data(*saved);
    trainer_ = Trainer::try_make(context_, *model_, data_.train, options, command_.execution).value();
    if (saved) {
      trainer_->try_restore(std::move(saved->state)).value();
      history_ = std::move(saved->history);
      resumed_ = true;
    }
  }

  std::optional<Training> load_training() const {
    Result<std::optional<Training>> training = try_load_training(command_.load, *model_);
    if (training) return std::move(training).value();
    fail(training.error().code(), training.error().message() + ". --restart starts a new training from the weights");
  }

  // Whether the command line agrees with the training that it goes on with.
  void check_against(const Training& saved) const {
    try_recipe(saved.options.recipe.name).value();
    same_as_saved("--batch", command_.batch, saved.options.batch);
    same_as_saved("--seed", command_.seed, saved.options.seed);
    same_as_saved("--recipe", command_.recipe, saved.options.recipe.name);
    if (command_.limit) same_as_saved("--limit", limit_, saved.samples);
    const Index least = std::max<Index>(saved.state.epoch + (saved.state.step > 0 ? 1 : 0), 1);
    if (command_.epochs.value_or(least) >= least) return;
    fail(ErrorCode::invalid_argument, "--epochs " + std::to_string(*command_.epochs) + ": the training in " +
                                          vitro::quoted(command_.load) + " has reached epoch " + std::to_string(least) +
                                          "; the smallest number allowed is " + std::to_string(least));
  }

  void check_data(const Training& saved) const {
    if (data_.train.size() == saved.samples && data_xxh64_ == saved.data_xxh64) return;
    const auto text = [](Index images, const std::string& hash) { return std::to_string(images) + " with xxh64 " + hash; };
    fail(ErrorCode::invalid_argument, "--load: the training in " + vitro::quoted(command_.load) +
                                          " runs over other images or labels (" + text(saved.samples, saved.data_xxh64) +
                                          ") than those in " + vitro::quoted(data_folder_) + " (" +
                                          text(data_.train.size(), data_xxh64_) +
                                          "); go on with its data, or use --restart to start a new training from its weights");
  }

  template <class T>
  void same_as_saved(const char* option, const std::optional<T>& given, const T& saved) const {
    if (!given || *given == saved) return;
    const auto text = [](const auto& value) {
      if constexpr (std::is_convertible_v<decltype(value), std::string>) {
        return std::string(value);
      } else {
        return std::to_string(value);
      }
    };
    fail(ErrorCode::invalid_argument,
         std::string(option) + " " + text(*given) + ": the training in " + vitro::quoted(command_.load) + " runs with " +
             text(saved) +
             "; leave the option out to go on with it, or use --restart to start a new training from its weights");
  }

  void print_setup() const {
    const TrainOptions& o = trainer_->options();
    std::printf("LeNet-5, %td parameters; %td training and %td test images from %s\n", model_->parameter_count(),
                data_.train.size(), data_.test.size(), data_folder_.c_str());
    std::printf("%td epochs, batch %td, recipe %s, seed %llu; %s kernels, %d thread%s\n", o.epochs, o.batch,
                o.recipe.name.c_str(), static_cast<unsigned long long>(o.seed), context_.kernels().name, context_.threads(),
                context_.threads() == 1 ? "" : "s");
    if (resumed_) {
      std::printf("going on with the training in %s at epoch %td, step %td\n", command_.load.c_str(),
                  trainer_->state().epoch + 1, trainer_->state().step + 1);
    }
    std::fflush(stdout);
  }

  int train() {
    const Index images = data_.train.size();
    const TrainState& start_state = trainer_->state();
    Progress progress(Progress::style_for(command_.quiet), trainer_->options().epochs, images,
                      start_state.epoch * images + start_state.totals.samples);
    catch_interrupts();
    Evaluation test;
    bool evaluated = false;
    while (!trainer_->finished() && !interrupted()) {
      const Clock::time_point start = Clock::now();
      if (!train_epoch(progress)) break;
      test = evaluate(context_, *model_, data_.test);
      evaluated = true;
      const EpochTotals& totals = trainer_->last_epoch();
      history_.push_back({totals.loss(), totals.accuracy(), test.accuracy(), seconds_since(start)});
      save(test, progress);  // before anything is printed, which may be what goes wrong
      progress.epoch(trainer_->epoch() - 1, history_.back());
      if (command_.save.empty() && command_.report.empty() && !standard_output_is_whole()) return kSuccess;  // all in vain
    }
    progress.end_line();
    const bool stopped = interrupted() && !trainer_->finished();
    // Whoever interrupts does not want to wait: the rest of the test images comes after the save.
    if (stopped) save(evaluate(context_, *model_, first_images(data_.test, kQuickTest)), progress);
    if (!evaluated || stopped) test = evaluate(context_, *model_, data_.test);
    if (!evaluated && !stopped) save(test, progress);
    Report report = make_report(*model_);
    report.interrupted = stopped;
    const int code = finish(report, test);
    return stopped ? say_stopped() : code;
  }

  // False if interrupted before the epoch's end.
  bool train_epoch(Progress& progress) {
    const Index epoch = trainer_->epoch();
    progress.begin_training();
    while (trainer_->epoch() == epoch) {
      if (interrupted()) return false;
      if (Status status = trainer_->try_step(); !status) {
        progress.end_line();
        status.value();
      }
      const bool ended = trainer_->epoch() != epoch;
      if (!ended && !progress.wants_step()) continue;
      const EpochTotals& totals = ended ? trainer_->last_epoch() : trainer_->state().totals;
      progress.step(epoch, totals.samples, totals);
    }
    progress.end_training();
    return true;
  }

  // What diverged in the last step, after its gradients were found finite, must not replace a state that was good.
  void save(const Evaluation& test, Progress& progress) const {
    Status status = trainer_->check_state();
    if (status && !std::isfinite(test.loss)) {
      status = Error(ErrorCode::non_finite,
                     "training diverged: the loss on the test images is infinite or NaN; a lower "
                     "learning rate usually helps");
    }
    if (status && !command_.save.empty()) {
      const WriteInPeace peace;
      status = try_save_training(command_.save, *model_,
                                 {trainer_->options(), data_.train.size(), data_xxh64_, trainer_->state(), history_});
    }
    if (!status) progress.end_line();
    status.value();
  }

  int say_stopped() const {
    if (command_.save.empty()) {
      std::fputs("lenet_train: interrupted; nothing was saved, since --save was not given\n", stderr);
    } else {
      std::fprintf(stderr, "lenet_train: interrupted; saved in %s. To go on: lenet_train --load %s --save %s\n",
                   command_.save.c_str(), command_.save.c_str(), command_.save.c_str());
    }
    return kInterrupted;
  }

  Report make_report(const Model& model) const {
    Report report;
    report.options = trainer_ ? &trainer_->options() : nullptr;
    report.data_folder = data_folder_;
    report.train_images = data_.train.size();
    report.limit = limit_;
    report.epochs = history_;
    report.isa = context_.kernels().name;
    report.threads = context_.threads();
    report.weights_sha256 = model.weights_sha256();
    report.tape_bytes = trainer_ ? trainer_->record_bytes() : 0;
    report.seconds = seconds_since(start_);
    return report;
  }

  int finish(const Report& report, const Evaluation& test) const {
    if (!command_.quiet) {
      std::fputs(confusion_text(test).c_str(), stdout);
      if (report.tape_bytes > 0)
        std::printf("Tape of the last training step: %zu bytes (nodes and tensor table)\n", report.tape_bytes);
      std::printf("Weights: sha256 %s\n", report.weights_sha256.c_str());
    }
    std::printf("Test accuracy: %.2f %% (%td of %td)\n", 100.0 * test.accuracy(), test.correct, test.samples);
    if (command_.report.empty()) return kSuccess;
    const WriteInPeace peace;
    write_report(command_.report, report, test).value();
    return kSuccess;
  }

  const TrainCommand& command_;
  Clock::time_point start_ = Clock::now();
  Context context_;
  MnistData data_;
  std::string data_folder_;
  std::string data_xxh64_;  // of the training images in use; empty where nobody will ask
  std::optional<Index> limit_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Trainer> trainer_;
  std::vector<EpochRecord> history_;
  bool resumed_ = false;
};

int run(int argc, char** argv) {
  const Parsed parsed = parse_command_line(argc, argv);
  if (parsed.exit_code) return *parsed.exit_code;
  try {
    return Run(parsed.command).execute();
  } catch (const Error& error) {
    std::fprintf(stderr, "lenet_train: %s\n", error.what());
    return error.code() == ErrorCode::non_finite ? kNotFinite : kFailure;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lenet_train: %s\n", error.what());
    return kFailure;
  }
}

}  // namespace
}  // namespace vitro::tools

int main(int argc, char** argv) {
  using namespace vitro::tools;
  // A reader that goes away (head, a pager) must not end a training: nothing would be saved.
  std::signal(SIGPIPE, SIG_IGN);
  const int code = run(argc, argv);
  if (code != kSuccess || standard_output_is_whole()) return code;
  std::fputs("lenet_train: not everything could be written to standard output\n", stderr);
  return kFailure;
}
